import type { CarrierState, UnavailableReason } from './carrier-answer.ts'

/** How the carrier stands, the gravest first. */
export type CarrierStanding =
  /** It refuses the credentials in use: nothing else can be asked. */
  | { readonly kind: 'refused' }
  /** It failed so often in a row that it is left alone for a while. `reason`: of the last failure. */
  | { readonly kind: 'failing'; readonly reason: UnavailableReason | null }
  /** The last call failed, and none has been answered since. */
  | { readonly kind: 'troubled'; readonly reason: UnavailableReason }
  | { readonly kind: 'answers' }
  | { readonly kind: 'unasked' }

/**
 * Judges the carrier. The refusal of the credentials and the last failure are two things: a password that was corrected is not refused because the carrier then
 * asks for fewer calls, and a carrier that fails is not one that refuses.
 */
export function carrierStanding({ credentials, breaker, lastAnswerAtMs, lastFailure }: CarrierState): CarrierStanding {
  if (credentials === 'refused') return { kind: 'refused' }
  if (breaker.state !== 'closed') return { kind: 'failing', reason: lastFailure?.reason ?? null }
  const isLatest = lastFailure !== null && (lastAnswerAtMs === null || lastFailure.atMs > lastAnswerAtMs)
  // Credentials that have brought a token since then are not in the way any more.
  const isOver = lastFailure?.reason === 'credentials' && credentials !== 'unknown'
  if (isLatest && !isOver) return { kind: 'troubled', reason: lastFailure.reason }
  return lastAnswerAtMs === null ? { kind: 'unasked' } : { kind: 'answers' }
}
