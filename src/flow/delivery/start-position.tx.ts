import type { EndpointEdit } from '../../domain/delivery/endpoint-state.ts'
import type { WriteTx } from '../write-store.ts'

type NoStart = Extract<EndpointEdit, { kind: 'from_gone' | 'from_ahead' }>
type Start = { readonly kind: 'ok'; readonly queuedTo: number | null } | NoStart

/** Up to where the feed is no concern of an endpoint that is to get what is in it from a sequence on; null, too: what is recorded from now on. */
export async function startPosition(tx: WriteTx, from: number | null): Promise<Start> {
  const { last, prunedTo } = await tx.feedSpan()
  if (from === null || from === last + 1) return { kind: 'ok', queuedTo: null }
  if (from > last) return { kind: 'from_ahead', last }
  // A hole must never pass for silence.
  if (prunedTo > 0 && from <= prunedTo) return { kind: 'from_gone', oldest: prunedTo + 1 }
  return { kind: 'ok', queuedTo: Math.max(0, from - 1) }
}

/** The first sequence that an endpoint has yet to be queued: from it on what it wants now holds. */
export async function firstUnqueuedSequence(tx: WriteTx, queuedTo: number | null): Promise<number> {
  return (queuedTo ?? (await tx.feedSpan()).last) + 1
}

/** In words for operators. */
export function explainStart(refused: NoStart): string {
  if (refused.kind === 'from_ahead') return `the last sequence is ${refused.last}. To start with what comes next, say "now".`
  return `events before sequence ${refused.oldest} are no longer kept.`
}
