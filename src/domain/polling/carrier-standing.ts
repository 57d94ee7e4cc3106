import type { CarrierState, UnavailableReason } from './carrier-answer.ts'

/** The carrier's state as operators see it, the gravest first. */
export type CarrierStanding =
  /** The carrier refuses the credentials, so no question can be asked. */
  | { readonly kind: 'refused' }
  /** It has failed so often in a row that it is not called for a while. `reason`: why the last call failed. */
  | { readonly kind: 'failing'; readonly reason: UnavailableReason | null }
  /** The last call failed, and no call was answered since. */
  | { readonly kind: 'troubled'; readonly reason: UnavailableReason }
  | { readonly kind: 'answers' }
  | { readonly kind: 'unasked' }

/**
 * Judges the carrier. A refusal and the last failure are separate facts. After an operator has corrected the password, a 429 does not make
 * it refused, and a failing carrier does not count as refusing.
 */
export function carrierStanding({ credentials, breaker, lastAnswerAtMs, lastFailure }: CarrierState): CarrierStanding {
  if (credentials === 'refused') return { kind: 'refused' }
  if (breaker.state !== 'closed') return { kind: 'failing', reason: lastFailure?.reason ?? null }
  const isLatest = lastFailure !== null && (lastAnswerAtMs === null || lastFailure.atMs > lastAnswerAtMs)
  // A failure of the credentials is over once they have brought a token.
  const isOver = lastFailure?.reason === 'credentials' && credentials !== 'unknown'
  if (isLatest && !isOver) return { kind: 'troubled', reason: lastFailure.reason }
  return lastAnswerAtMs === null ? { kind: 'unasked' } : { kind: 'answers' }
}
