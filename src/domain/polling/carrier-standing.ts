import type { CarrierState, UnavailableReason } from './carrier-answer.ts'

/** The carrier's state as operators see it, the gravest first. */
export type CarrierStanding =
  /** It refuses the credentials in use, so it can be asked nothing. */
  | { readonly kind: 'refused' }
  /** It failed so often in a row that it is not called for a while. `reason`: of the last failure. */
  | { readonly kind: 'failing'; readonly reason: UnavailableReason | null }
  /** The last call failed, and none has been answered since. */
  | { readonly kind: 'troubled'; readonly reason: UnavailableReason }
  | { readonly kind: 'answers' }
  | { readonly kind: 'unasked' }

/**
 * Judges the carrier. The refusal of the credentials and the last failure are two facts: a password that was corrected does not count as
 * refused because the carrier then asks for fewer calls, and a carrier that fails does not count as refusing.
 */
export function carrierStanding({ credentials, breaker, lastAnswerAtMs, lastFailure }: CarrierState): CarrierStanding {
  if (credentials === 'refused') return { kind: 'refused' }
  if (breaker.state !== 'closed') return { kind: 'failing', reason: lastFailure?.reason ?? null }
  const isLatest = lastFailure !== null && (lastAnswerAtMs === null || lastFailure.atMs > lastAnswerAtMs)
  // A failure for its credentials is over once they have brought a token.
  const isOver = lastFailure?.reason === 'credentials' && credentials !== 'unknown'
  if (isLatest && !isOver) return { kind: 'troubled', reason: lastFailure.reason }
  return lastAnswerAtMs === null ? { kind: 'unasked' } : { kind: 'answers' }
}
