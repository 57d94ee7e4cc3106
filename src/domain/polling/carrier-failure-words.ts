import { isTlsFault, TLS_FAULTS, type TlsFault, tlsMeaning, tlsRemedy } from '../tls-fault.ts'
import { type LastFailure, lacksAnswer, UNAVAILABLE_REASONS, type UnavailableReason } from './carrier-answer.ts'

const FAILURES: Readonly<Record<UnavailableReason, string>> = {
  budget: 'our own limits allowed no call',
  resting: 'the relay rests after failures',
  credentials: 'it gave no token for our password',
  timeout: 'no answer in time',
  network: 'it could not be reached',
  rate_limited: 'it asked for fewer calls (429)',
  server_error: 'it failed inside (5xx)',
  redirect: 'it redirected, which is not followed',
  bad_response: 'its answer made no sense',
  token_bad_response: 'its login answered without a token',
  rejected: 'it rejected the question',
}

type Cause = Pick<LastFailure, 'reason' | 'tls'>

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

/** Describes why a call failed, as a part of a sentence. If only another version of the relay knows the code, returns it. */
export function failureText(code: string): string {
  if (isTlsFault(code)) return tlsMeaning(code, 'the carrier')
  return TEXTS.get(code) ?? code.replaceAll('_', ' ')
}

/** Describes why the last call failed, as a part of a sentence. */
export function lastFailureText(failure: Cause): string {
  return failureText(failureCode(failure))
}
