import type { CarrierState, UnavailableReason } from './carrier-answer.ts'

/** The carrier's state as operators see it, from the gravest state to the least grave. */
export type CarrierStanding =
  /** The carrier refuses the credentials, so no question can be asked. */
  | { readonly kind: 'refused' }
  /** Calls rest, because the carrier has failed too many times in a row. `reason`: why the last call failed; null: not known. */
  | { readonly kind: 'failing'; readonly reason: UnavailableReason | null }
  /** The last call failed, and no call was answered since. */
  | { readonly kind: 'troubled'; readonly reason: UnavailableReason }
  | { readonly kind: 'answers' }
  | { readonly kind: 'unasked' }

/** Returns when scheduled calls may be made again, at the earliest, while calls pause or the credentials are refused; null: calls are made. */
export function pausedUntilMs(
  { credentials, refusal, breaker }: Pick<CarrierState, 'credentials' | 'refusal' | 'breaker'>,
  nowMs: number,
): number | null {
  if (credentials === 'refused') return nowMs + (refusal?.retryMs ?? 0)
  return breaker.state === 'closed' ? null : nowMs + breaker.restMs
}

/**
 * Judges the carrier. Refused credentials and failed calls are separate states. For example, a 429 or an outage after an operator has
 * corrected the password does not mean that the password is refused.
 */
export function carrierStanding({ credentials, breaker, lastAnswerAtMs, lastFailure }: CarrierState): CarrierStanding {
  if (credentials === 'refused') return { kind: 'refused' }
  if (breaker.state !== 'closed') return { kind: 'failing', reason: lastFailure?.reason ?? null }
  const isLatest = lastFailure !== null && (lastAnswerAtMs === null || lastFailure.atMs > lastAnswerAtMs)
  // A failure because of the credentials is over when the token endpoint has accepted them.
  const isOver = lastFailure?.reason === 'credentials' && credentials !== 'unknown'
  if (isLatest && !isOver) return { kind: 'troubled', reason: lastFailure.reason }
  return lastAnswerAtMs === null ? { kind: 'unasked' } : { kind: 'answers' }
}
