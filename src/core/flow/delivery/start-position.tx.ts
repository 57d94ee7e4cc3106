import type { EndpointEdit } from '../../domain/delivery/endpoint-state.ts'
import { recordedAt } from '../../store/delivery/feed.ts'
import type { WriteTx } from '../../store/write-store.ts'

type NoStart = Extract<EndpointEdit, { kind: 'from_gone' | 'from_ahead' }>
type Start = { readonly kind: 'ok'; readonly queuedTo: number | null; readonly beganAtMs: number } | NoStart

/**
 * Finds the start of an endpoint that is to get the feed from sequence `from` on. `queuedTo` is the last sequence that it does not get. If
 * `from` or `queuedTo` is null, the endpoint starts with the events that are recorded from now on. `beganAtMs`: when its first event was
 * recorded; for an endpoint that starts now, the present time.
 */
export async function startPosition(tx: WriteTx, from: number | null, nowMs: number): Promise<Start> {
  const { last, prunedTo } = await tx.feedSpan()
  if (from === null) return { kind: 'ok', queuedTo: null, beganAtMs: nowMs }
  if (from === last + 1) {
    tx.nothingSince(last)
    return { kind: 'ok', queuedTo: null, beganAtMs: nowMs }
  }
  if (from > last) return { kind: 'from_ahead', last }
  // Refuse to start at deleted events, because skipping them would look as if they had never happened.
  if (prunedTo > 0 && from <= prunedTo) return { kind: 'from_gone', oldest: prunedTo + 1 }
  return { kind: 'ok', queuedTo: Math.max(0, from - 1), beganAtMs: Math.min(nowMs, (await recordedAt(tx, from)) ?? nowMs) }
}

/**
 * Returns the first sequence that is not queued for an endpoint yet. The endpoint's present settings apply from this sequence on. The value
 * may be a placeholder, so save it, but do not compare it.
 */
export async function firstUnqueuedSequence(tx: WriteTx, queuedTo: number | null): Promise<number> {
  return queuedTo === null ? await tx.sequenceToCome() : queuedTo + 1
}

/** Explains a refused start to operators. */
export function explainStart(refused: NoStart): string {
  if (refused.kind === 'from_ahead') return `the last sequence is ${refused.last}. To start with what comes next, give "now".`
  return `events before sequence ${refused.oldest} are no longer kept.`
}
