import type { PollObservation } from '../history/observation.ts'
import type { TlsFault } from '../system-reason.ts'
import type { CredentialRefusal, RefusedBy } from './carrier-memory.ts'

/** `app`: an app waits for the answer. `schedule`: nobody waits. If there are too few calls, apps go first (DOMAIN 6.4). */
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

/** Reasons that concern one question: other questions may get usable answers. */
const OF_QUESTION: ReadonlySet<UnavailableReason> = new Set(['rejected', 'bad_response'])

/** Whether the carrier did answer this question, but with an error such as 400, or in a form that the spec does not allow. */
export function isUnusable(answer: CarrierAnswer): boolean {
  return answer.kind === 'unavailable' && OF_QUESTION.has(answer.reason)
}

/** Reasons for which calls about other parcels fail too. After a failure for any other reason, the breaker decides whether more calls are made. */
const OF_ALL: ReadonlySet<UnavailableReason> = new Set([
  'budget',
  'resting',
  'credentials',
  'rate_limited',
  'redirect',
  'token_bad_response',
])

export function isOfAll(reason: UnavailableReason): boolean {
  return OF_ALL.has(reason)
}

/** How calls without an answer count (`breaker`). Null: they do not, because the reason has a state of its own or concerns the relay itself. */
const LACKING: Readonly<Record<UnavailableReason, 'failure' | 'refusal' | null>> = {
  budget: null,
  resting: null,
  credentials: null,
  timeout: 'failure',
  network: 'failure',
  rate_limited: null,
  server_error: 'failure',
  redirect: 'refusal',
  bad_response: 'refusal',
  token_bad_response: 'refusal',
  rejected: 'refusal',
}

export const UNAVAILABLE_REASONS: readonly string[] = Object.keys(LACKING)

export function lacksAnswer(reason: UnavailableReason): 'failure' | 'refusal' | null {
  return LACKING[reason]
}

/** Whether the question was not sent to the carrier. */
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

/**
 * `tls`: why TLS failed; absent: it did not. `status`: the HTTP status of the reply; absent: it is not why the call failed. `said`: the first line of
 * that reply, without words that may name a parcel; absent: it had no text.
 */
export interface LastFailure {
  readonly reason: UnavailableReason
  readonly tls?: TlsFault
  readonly status?: number
  readonly said?: string
  readonly atMs: number
}

/** For `/readyz`, metrics and operators. Times are epoch milliseconds. */
export interface CarrierState {
  /**
   * `unknown`: the password was not tried yet. `obtained`: the token endpoint accepted the password, and the status API has not answered a
   * call with the new token yet. `accepted`: the status API answered such a call. `refused`: the token endpoint refused the password, or the
   * status API refused the token. Other failures do not change this.
   */
  readonly credentials: 'unknown' | 'obtained' | 'accepted' | 'refused'
  /** Null: the credentials are not refused. */
  readonly refusal: RefusalState | null
  readonly lastAnswerAtMs: number | null
  readonly lastFailure: LastFailure | null
  readonly budget: { readonly waiting: number; readonly inFlight: number; readonly callsToday: number; readonly callsPerDay: number }
  /**
   * See `core/domain/polling/breaker`. `failures`: while calls pause, all calls in a row without an answer. `restMs`: how long until the schedule may make
   * calls again. `sinceMs`: when the first of those calls failed, epoch
   * milliseconds; absent: calls do not pause. `unanswered`: while they do not, how many calls in a row had no answer, and since when; absent: none.
   */
  readonly breaker: {
    readonly state: 'closed' | 'open' | 'probing'
    readonly failures: number
    readonly restMs: number
    readonly sinceMs?: number
    readonly unanswered?: { readonly count: number; readonly sinceMs: number }
  }
}

/** The token that all replicas share, and the state of the credentials. Durations count from when the record is read. */
export interface TokenRecord extends TokenState {
  /** A number that changes with each new token. */
  readonly version: number
  /** The encrypted token; null: there is no token. */
  readonly sealed: string | null
}

export interface TokenState {
  /** How many logins the token endpoint has answered, with a token or a refusal, since a token last worked. */
  readonly tries: number
  /** How many token requests in a row had no usable answer. */
  readonly troubles: number
  /** Why the last token request failed; null: it did not fail, or the reason is not known. */
  readonly trouble: UnavailableReason | null
  /** For how long the credentials must not be tried again because the carrier refused them; null: they are not refused. */
  readonly refusedForMs: number | null
  readonly mark: CredentialRefusal['mark']
  /** For how long no token may be requested, for a reason other than a refusal. */
  readonly pausedForMs: number
}

/**
 * How a flight ended. A flight is one fetch from the carrier, for all apps that ask for the same identifier while it runs. `recorded`: the
 * answer is stored. `not_found`: the carrier does not know the identifier. `unavailable`: the carrier could not be asked. `unusable`: its
 * answer could not be used. `failed`: the relay itself failed.
 */
export interface FlightEnd {
  readonly kind: 'recorded' | 'not_found' | 'unavailable' | 'unusable' | 'failed'
  readonly retryAfterMs: number | null
}
