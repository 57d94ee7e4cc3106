import type { CarrierState, UnavailableReason } from './carrier-answer.ts'

/** The carrier's state as operators see it. The gravest state is listed first. */
export type CarrierStanding =
  /** The carrier refuses the credentials, so no question can be asked. */
  | { readonly kind: 'refused' }
  /** The carrier has failed so many times in a row that it is not called for a while. `reason`: why the last call failed. */
  | { readonly kind: 'failing'; readonly reason: UnavailableReason | null }
  /** The last call failed, and no call was answered since. */
  | { readonly kind: 'troubled'; readonly reason: UnavailableReason }
  | { readonly kind: 'answers' }
  | { readonly kind: 'unasked' }

/**
 * Judges the carrier. Refused credentials and failed calls are judged separately: a 429 after an operator has corrected the password does
 * not mean that the password is refused, and neither does an outage of the carrier.
 */
export function carrierStanding({ credentials, breaker, lastAnswerAtMs, lastFailure }: CarrierState): CarrierStanding {
  if (credentials === 'refused') return { kind: 'refused' }
  if (breaker.state !== 'closed') return { kind: 'failing', reason: lastFailure?.reason ?? null }
  const isLatest = lastFailure !== null && (lastAnswerAtMs === null || lastFailure.atMs > lastAnswerAtMs)
  // A failure because of the credentials is over as soon as they have been accepted for a token.
  const isOver = lastFailure?.reason === 'credentials' && credentials !== 'unknown'
  if (isLatest && !isOver) return { kind: 'troubled', reason: lastFailure.reason }
  return lastAnswerAtMs === null ? { kind: 'unasked' } : { kind: 'answers' }
}
