import { spanText } from '../amounts.ts'
import type { PollObservation } from '../history/observation.ts'
import { isTlsFault, TLS_FAULTS, type TlsFault, tlsMeaning, tlsRemedy } from '../system-reason.ts'
import { type CredentialRefusal, describeSpent, type RefusedBy } from './call-budget.ts'

/**
 * `app`: an app waits for the answer. `watchdog`: a verdict about the parcel waits for it. `schedule`: nobody waits. If there are too few calls, they
 * go in this order (DOMAIN 6.4).
 */
export type CallPriority = 'app' | 'watchdog' | 'schedule'

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

export function isUnavailableReason(text: string): text is UnavailableReason {
  return Object.hasOwn(LACKING, text)
}

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

/** The subject of the stored trouble that lasts while the carrier answers no question. */
export const CARRIER_TROUBLE = 'carrier'

/** An outage of the carrier that the store knows. `failure`: the last failure that operators were told of; null: not known. */
export interface CarrierOutage {
  readonly sinceMs: number
  readonly failure: LastFailure | null
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

const FAILURES: Readonly<Record<UnavailableReason, string>> = {
  budget: 'our own limits allowed no call',
  resting: 'the relay rests after failures',
  credentials: 'it gave no token for our password',
  timeout: 'no answer in time',
  network: 'it could not be reached',
  rate_limited: 'it asked for fewer calls',
  server_error: 'it failed inside',
  redirect: 'it redirected, which is not followed',
  bad_response: 'its answer made no sense',
  token_bad_response: 'its login answered without a token',
  rejected: 'it rejected the question',
}

/** The status to show when the status of the reply is not known. */
const USUAL_STATUS: ReadonlyMap<string, string> = new Map([
  ['rate_limited', '429'],
  ['server_error', '5xx'],
])

type Cause = Pick<LastFailure, 'reason' | 'tls' | 'status'>

/** Says in a sentence what an operator can do about a carrier that answers no question. `failure`: the last failed call. */
export function carrierRemedy(failure: Cause | null): string {
  if (failure?.tls !== undefined) return tlsRemedy(failure.tls, 'upstream.caFile')
  return failure === null || lacksAnswer(failure.reason) !== 'refusal'
    ? 'Check whether the carrier reports an outage, and whether DNS, the firewall and the proxy let the relay reach it.'
    : 'The carrier can be reached, but it takes no question: ask it whether our account and our address may still ask, and compare upstream.baseUrl with its documents.'
}

/** All codes of `failureCode`. */
export const FAILURE_CODES: readonly string[] = [...UNAVAILABLE_REASONS, ...TLS_FAULTS]

/** Names a failure for programs: why TLS failed, else the reason. */
export function failureCode({ reason, tls }: Cause): UnavailableReason | TlsFault {
  return tls ?? reason
}

const TEXTS: ReadonlyMap<string, string> = new Map(Object.entries(FAILURES))

/** Describes why a call failed, as a part of a sentence. If only another version of the relay knows the code, returns it. `status`: of the reply. */
export function failureText(code: string, status: number | string | undefined = USUAL_STATUS.get(code)): string {
  if (isTlsFault(code)) return tlsMeaning(code, 'the carrier')
  return `${TEXTS.get(code) ?? code.replaceAll('_', ' ')}${status === undefined ? '' : ` (${status})`}`
}

/** Describes why the last call failed, as a part of a sentence. */
export function lastFailureText(failure: Cause): string {
  return failureText(failureCode(failure), failure.status)
}

/** Says in a sentence why the carrier cannot be asked now, and how an operator can ask it nevertheless; '': not known. `spentUntilMs`: until then the day's calls are used up. */
export function describeNotAsked(
  { breaker, lastFailure }: Pick<CarrierState, 'breaker' | 'lastFailure'>,
  spentUntilMs: number | null,
): string {
  if (spentUntilMs !== null) return describeSpent(spentUntilMs)
  if (breaker.state === 'closed') return lastFailure === null ? '' : `The last call failed: ${lastFailureText(lastFailure)}.`
  const since = breaker.sinceMs === undefined ? '' : ` since ${new Date(breaker.sinceMs).toISOString()}`
  const why = lastFailure === null ? '' : ` (${failureWithWords(lastFailure)})`
  return `It has answered no question${since}${why}, so calls pause. ${pauseText(breaker)} parcel-relay check asks it at once, and an answer ends the pause.`
}

/** Says in a clause how the carrier has answered since a time what cannot be used; '': not known, because another replica has asked. */
export function describeUnusable({ lastFailure }: Pick<CarrierState, 'lastFailure'>, sinceMs: number): string {
  if (lastFailure === null || lastFailure.atMs < sinceMs || !OF_QUESTION.has(lastFailure.reason)) return ''
  return `: ${failureWithWords(lastFailure)}`
}

/** Says in a sentence what happens next while calls pause. */
export function pauseText({ state, restMs }: Pick<CarrierState['breaker'], 'state' | 'restMs'>): string {
  const end = 'if it gets no answer, the pause goes on.'
  if (state === 'probing') return `One question is under way: ${end}`
  return `${restMs > 0 ? `In ${spanText(restMs)}` : 'With the next poll that is due,'} the relay tries one question: ${end}`
}

/** Describes why a call failed, as a part of a sentence, with the words of the carrier's reply. */
function failureWithWords(failure: LastFailure): string {
  return `${lastFailureText(failure)}${failure.said === undefined ? '' : ` "${failure.said}"`}`
}
