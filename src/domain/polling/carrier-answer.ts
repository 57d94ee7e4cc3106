import type { PollObservation } from '../history/observation.ts'

/** `app`: somebody waits for the answer; `schedule`: nobody does. Apps go first when the budget is short (DOMAIN 6.4). */
export type CallPriority = 'app' | 'schedule'

export type CarrierAnswer =
  | { readonly kind: 'found'; readonly observation: PollObservation }
  /** The carrier's 404 or 410, the only ones that mean not found (DOMAIN 1.5). */
  | { readonly kind: 'not_found' }
  | { readonly kind: 'unavailable'; readonly reason: UnavailableReason; readonly retryAfterMs?: number }

export type UnavailableReason =
  | 'budget'
  /** It failed again and again, and is left alone for a while. */
  | 'resting'
  | 'credentials'
  | 'timeout'
  | 'network'
  | 'rate_limited'
  | 'server_error'
  | 'redirect'
  | 'bad_response'
  | 'token_bad_response'
  | 'rejected'

/** For `/readyz`, metrics and operators. */
export interface CarrierState {
  readonly credentials: 'unknown' | 'accepted' | 'refused'
  readonly lastAnswerAtMs: number | null
  readonly lastFailure: { readonly reason: UnavailableReason; readonly atMs: number } | null
  readonly budget: { readonly waiting: number; readonly inFlight: number; readonly callsToday: number; readonly callsPerDay: number }
  /** See `domain/polling/breaker`; `restMs`: until the schedule may ask again. */
  readonly breaker: { readonly state: 'closed' | 'open' | 'probing'; readonly failures: number; readonly restMs: number }
}
