import type { PollObservation } from '../history/observation.ts'
import type { RefusedBy } from './carrier-memory.ts'

/** `app`: somebody waits for the answer. `schedule`: nobody does. Apps go first when the budget is short (DOMAIN 6.4). */
export type CallPriority = 'app' | 'schedule'

/** The result of a poll. */
export type CarrierAnswer =
  | { readonly kind: 'found'; readonly observation: PollObservation }
  /** The carrier answered 404 or 410. No other answer means that it does not know the parcel (DOMAIN 1.5). */
  | { readonly kind: 'not_found' }
  | { readonly kind: 'unavailable'; readonly reason: UnavailableReason; readonly retryAfterMs?: number }

/** Why the carrier gave no usable answer. */
export type UnavailableReason =
  | 'budget'
  /** The breaker is open after repeated failures. */
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

/** These reasons concern one question: the carrier answers, and may answer other questions well. */
const OF_QUESTION: ReadonlySet<UnavailableReason> = new Set(['rejected', 'bad_response'])

/** Whether the carrier answered with something that is no report and does not say "unknown" (400, 403, 422, another shape). */
export function isUnusable(answer: CarrierAnswer): boolean {
  return answer.kind === 'unavailable' && OF_QUESTION.has(answer.reason)
}

/**
 * These reasons concern all parcels. The breaker judges the other reasons, because a call that fails for one parcel may work for another.
 */
const OF_ALL: ReadonlySet<UnavailableReason> = new Set([
  'budget',
  'resting',
  'credentials',
  'rate_limited',
  'redirect',
  'token_bad_response',
])

/** Whether the carrier cannot be asked about any parcel now. */
export function isOfAll(reason: UnavailableReason): boolean {
  return OF_ALL.has(reason)
}

/** Whether the question was never sent, so that its failure says nothing about its parcel. */
export function wasNotAsked(reason: UnavailableReason): boolean {
  return reason === 'budget' || reason === 'resting'
}

/** The last refusal of the credentials. */
export interface RefusalState {
  /** Epoch milliseconds; null: another replica saw the refusal. */
  readonly atMs: number | null
  /** Null: another replica saw the refusal. */
  readonly by: RefusedBy | null
  /** How long until the same password may be tried again. */
  readonly retryMs: number
}

/** The state of the connection to the carrier, for `/readyz`, metrics and operators. Times are epoch milliseconds. */
export interface CarrierState {
  /**
   * `unknown`: the password in use has not been tried yet. `obtained`: the token endpoint accepted it, and no call with the new token was
   * answered yet. `accepted`: the status API answered a call with it. `refused`: the token endpoint refused the password, or the status API
   * its token. Other failures change nothing here.
   */
  readonly credentials: 'unknown' | 'obtained' | 'accepted' | 'refused'
  /** The refusal, while the credentials are refused. */
  readonly refusal: RefusalState | null
  readonly lastAnswerAtMs: number | null
  readonly lastFailure: { readonly reason: UnavailableReason; readonly atMs: number } | null
  readonly budget: { readonly waiting: number; readonly inFlight: number; readonly callsToday: number; readonly callsPerDay: number }
  /** See `domain/polling/breaker`. `restMs`: how long until the schedule may call again. */
  readonly breaker: { readonly state: 'closed' | 'open' | 'probing'; readonly failures: number; readonly restMs: number }
}
