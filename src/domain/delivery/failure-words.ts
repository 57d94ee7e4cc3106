import { firstLine } from '../received-text.ts'
import { isTlsFault, tlsMeaning, tlsRemedy } from '../tls-fault.ts'
import type { FailureReason } from './delivery.ts'
import type { EndpointState } from './endpoint-state.ts'
import type { FailureGroup } from './failure-group.ts'

/** The parts of a sentence about a failure, such as `It answers 401`, `signature does not match` and `it does not accept the signature.` */
export interface FailureWords {
  readonly what: string
  /** The first line of the answer, without control characters and shortened; empty: there was no text. */
  readonly said: string
  /** A clause with its full stop. */
  readonly meaning: string
}

/** For each reason why there is no answer, a sentence without its full stop. `host`: the host of the endpoint's URL. */
const REASONS: ReadonlyMap<string, (host: string) => string> = new Map<FailureReason, (host: string) => string>([
  ['timeout', (host) => `${host} does not answer in time (delivery.timeout)`],
  ['dns', (host) => `the name ${host} is not found`],
  ['connection_refused', (host) => `nothing listens at ${host}, or there is no route to it`],
  ['reset', (host) => `${host} ends the connection before it answers`],
  ['proxy', () => 'the proxy cannot be reached, or refuses the connection'],
  [
    'bad_response',
    (host) => `the answer of ${host} is not valid HTTP (it may name its length twice, or beside Transfer-Encoding), or is too long`,
  ],
  ['forbidden', (host) => `${host} is an address that may not be sent to (delivery.allowNetworks)`],
  ['network', (host) => `the network between the relay and ${host} fails`],
])

export function answerWord({ status, reason }: Pick<FailureGroup, 'status' | 'reason'>): string {
  return status === null ? (reason ?? 'no answer').replaceAll('_', ' ') : String(status)
}

/** Whether an endpoint has accepted nothing since the first of these failures. */
export function refusesAll({ health: { lastSuccessAtMs } }: EndpointState, { firstAtMs }: FailureGroup): boolean {
  return lastSuccessAtMs === null || lastSuccessAtMs < firstAtMs
}

/** Whether a receiver that answers this status most probably has another key, so that no signature matches. */
export function isLikelyKey(status: number | null): boolean {
  return status === 401 || status === 403
}

/** Whether another URL may mend the failure: the path is not known there, or has moved, or the name or the port is wrong. */
export function isLikelyUrl({ status, reason }: Pick<FailureGroup, 'status' | 'reason'>): boolean {
  if (status === null) return reason === 'dns' || reason === 'connection_refused'
  return (status >= 300 && status <= 399) || status === 404 || status === 405 || status === 415
}

/** `isAll`: the endpoint has accepted nothing since the failures began. */
export function wordFailure(failure: Pick<FailureGroup, 'status' | 'reason' | 'answerStart'>, url: string, isAll: boolean): FailureWords {
  const { status, reason, answerStart } = failure
  if (status === null && reason !== null && isTlsFault(reason))
    return { what: 'No answer', said: '', meaning: `${tlsMeaning(reason, hostOf(url))}. ${tlsRemedy(reason, 'caFile')}` }
  if (status === null)
    return { what: 'No answer', said: '', meaning: `${REASONS.get(reason ?? '')?.(hostOf(url)) ?? answerWord(failure)}.` }
  return { what: `It answers ${status}`, said: firstLine(answerStart), meaning: meaningOf(status, isAll) }
}

/** Joins the words about a failure into one sentence, for a terminal or a message. */
export function failureSentence({ what, said, meaning }: FailureWords): string {
  return `${what}${said === '' ? '' : ` "${said}"`}: ${meaning}`
}

function meaningOf(status: number, isAll: boolean): string {
  if (status >= 500) return 'it can be reached, but fails inside.'
  if (isLikelyKey(status)) return 'it does not accept the signature. Does it have the current key?'
  if (status === 410) return 'it says that it is gone for good.'
  if (status === 429) return 'it asks the relay to send less for a while.'
  if (status === 413) return 'the event is too large for it. Does a proxy before it limit the size of bodies?'
  if (status === 415) return 'it does not take application/json. Is the path right?'
  if (isAll && (status === 404 || status === 405)) return 'it takes no events there. Is the path right?'
  if (status >= 400) return isAll ? 'it refuses these events.' : 'it refuses some events.'
  if (status >= 300) return 'it redirects, which the relay does not follow; name the final URL.'
  return 'the relay takes only 200 to 299 as accepted.'
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url
}
