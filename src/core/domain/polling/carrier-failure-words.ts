import { spanText } from '../amounts.ts'
import { isTlsFault, TLS_FAULTS, type TlsFault, tlsMeaning, tlsRemedy } from '../system-reason.ts'
import { describeSpent } from './call-budget.ts'
import { type CarrierState, type LastFailure, lacksAnswer, UNAVAILABLE_REASONS, type UnavailableReason } from './carrier-answer.ts'

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
  const why = lastFailure === null ? '' : ` (${lastFailureText(lastFailure)})`
  return `It has answered no question${since}${why}, so calls pause for another ${spanText(breaker.restMs)}. parcel-relay check asks it at once, and an answer ends the pause.`
}
