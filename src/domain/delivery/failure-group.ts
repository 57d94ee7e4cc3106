import { hash } from 'node:crypto'
import { type AttemptResult, isOwnFailure } from './delivery.ts'
import type { SettledAttempt } from './dispatch-round.ts'

/** Failed attempts at an endpoint with the same answer, or with no answer for the same reason. Times are epoch milliseconds. */
export interface FailureGroup {
  /** Null: there was no answer, for the reason in `reason`. */
  readonly status: number | null
  readonly reason: string | null
  /** The first bytes of the latest answer in the group. */
  readonly answerStart: Uint8Array
  readonly count: number
  readonly firstAtMs: number
  readonly lastAtMs: number
  /** The delivery of the latest failed attempt in the group. */
  readonly deliveryId: number
}

/** Failed attempts to add to the stored group with the same digest. */
export interface FailureNote extends FailureGroup {
  readonly endpointId: string
  /** Identifies the group within its endpoint. */
  readonly digest: string
}

/** How many groups are kept for each endpoint: the ones with the latest failures. */
export const FAILURE_GROUPS_MAX = 20

/** If a group has had no failure for this long, its next failure starts the count again. */
export const FAILURES_COUNT_FOR_MS = 30 * 24 * 60 * 60 * 1000

/**
 * Groups failed attempts, sorted by endpoint and digest. Leaves out attempts that failed because of the relay itself, because they say
 * nothing about the endpoint.
 */
export function groupFailures(
  attempts: readonly Pick<SettledAttempt, 'endpointId' | 'deliveryId' | 'result' | 'atMs'>[],
): readonly FailureNote[] {
  const groups = new Map<string, FailureNote>()
  for (const { endpointId, deliveryId, result, atMs } of attempts) {
    if (result.kind === 'accepted' || isOwnFailure(result)) continue
    const [status, reason] = result.kind === 'failed' ? [null, result.reason] : [result.status, null]
    const digest = digestOf(result)
    const key = `${endpointId}/${digest}`
    const known = groups.get(key)
    const isLast = known === undefined || atMs >= known.lastAtMs
    groups.set(key, {
      endpointId,
      digest,
      status,
      reason,
      answerStart: isLast ? result.answerStart : known.answerStart,
      deliveryId: isLast ? deliveryId : known.deliveryId,
      count: (known?.count ?? 0) + 1,
      firstAtMs: Math.min(known?.firstAtMs ?? atMs, atMs),
      lastAtMs: Math.max(known?.lastAtMs ?? atMs, atMs),
    })
  }
  return [...groups.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
}

/** Numbers and ids in answers. Grouping ignores them, because an answer often contains a time or the id of a request. */
const NUMBERS = /\b(?=[a-z-]*\d)[0-9a-f-]{8,}\b|\d+/gi
const COMPARED_BYTES = 256

function digestOf(result: Exclude<AttemptResult, { kind: 'accepted' }>): string {
  const words = Buffer.from(result.answerStart).toString('latin1', 0, COMPARED_BYTES).replace(NUMBERS, '#')
  return hash('sha256', result.kind === 'failed' ? result.reason : `${result.status} ${words}`, 'hex').slice(0, 24)
}
