import type { PollObservation } from '../history/observation.ts'
import type { RefusedBy } from './carrier-memory.ts'

/** `app`: an app waits for the answer. `schedule`: nobody waits for the answer. Apps go first if there are too few calls (DOMAIN 6.4). */
export type CallPriority = 'app' | 'schedule'

export type CarrierAnswer =
  | { readonly kind: 'found'; readonly observation: PollObservation }
  /** The carrier answered 404 or 410. Only these answers mean that it does not know the parcel (DOMAIN 1.5). */
  | { readonly kind: 'not_found' }
  | { readonly kind: 'unavailable'; readonly reason: UnavailableReason; readonly retryAfterMs?: number }

/** Why the carrier gave no usable answer. */
export type UnavailableReason =
  | 'budget'
  /** The breaker (`breaker.ts`) is open after repeated failures, so the call was not made. */
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

/** Reasons that concern a single question. The carrier may give usable answers to other questions. */
const OF_QUESTION: ReadonlySet<UnavailableReason> = new Set(['rejected', 'bad_response'])

/** Whether the carrier's answer tells nothing about the parcel: its status is one such as 400 or 422, or it does not have the form of the spec. */
export function isUnusable(answer: CarrierAnswer): boolean {
  return answer.kind === 'unavailable' && OF_QUESTION.has(answer.reason)
}

/** Reasons for which calls about other parcels would fail too. After any other failure, the breaker decides whether to make such calls. */
const OF_ALL: ReadonlySet<UnavailableReason> = new Set([
  'budget',
  'resting',
  'credentials',
  'rate_limited',
  'redirect',
  'token_bad_response',
])

/** Whether a failure for this reason concerns all parcels. */
export function isOfAll(reason: UnavailableReason): boolean {
  return OF_ALL.has(reason)
}

/** Whether the question was not sent to the carrier. Such a failure says nothing about the parcel. */
export function wasNotAsked(reason: UnavailableReason): boolean {
  return reason === 'budget' || reason === 'resting'
}

export interface RefusalState {
  /** Epoch milliseconds; null: another replica saw the refusal. */
  readonly atMs: number | null
  /** Null: another replica saw the refusal. */
  readonly by: RefusedBy | null
  /** How long until the same password may be tried again, milliseconds. */
  readonly retryMs: number
}

/** The state of the connection to the carrier, for `/readyz`, metrics and operators. Times are epoch milliseconds. */
export interface CarrierState {
  /**
   * `unknown`: the password in use was not tried yet. `obtained`: the token endpoint accepted the password, but no call with the new token
   * was answered yet. `accepted`: the status API answered a call with the token. `refused`: the token endpoint refused the password, or the
   * status API refused the token. Other failures do not change this.
   */
  readonly credentials: 'unknown' | 'obtained' | 'accepted' | 'refused'
  /** The last refusal, as long as the credentials are refused; else null. */
  readonly refusal: RefusalState | null
  readonly lastAnswerAtMs: number | null
  readonly lastFailure: { readonly reason: UnavailableReason; readonly atMs: number } | null
  readonly budget: { readonly waiting: number; readonly inFlight: number; readonly callsToday: number; readonly callsPerDay: number }
  /** See `domain/polling/breaker`. `restMs`: how long until the schedule may make calls again. */
  readonly breaker: { readonly state: 'closed' | 'open' | 'probing'; readonly failures: number; readonly restMs: number }
}
