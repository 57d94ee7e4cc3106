import type { FailureReason } from '../../../domain/delivery/delivery.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import type { FailureGroup } from '../../../domain/delivery/failure-group.ts'
import { html, type Markup, type Part } from '../html.ts'
import { firstLine } from '../received-text.ts'

/** The answer in a word or two: its status, or why there was none. */
export function answerWord({ status, reason }: Pick<FailureGroup, 'status' | 'reason'>): string {
  return status === null ? (reason ?? 'no answer').replaceAll('_', ' ') : String(status)
}

/** Why there was no answer, as a sentence without its full stop. `host`: the host that should have answered. */
const REASONS: ReadonlyMap<string, (host: string) => string> = new Map<FailureReason, (host: string) => string>([
  ['timeout', (host) => `${host} does not answer in time (delivery.timeout)`],
  ['dns', (host) => `the name ${host} is not found`],
  ['connection_refused', (host) => `nothing listens at ${host}, or no way leads there`],
  ['reset', (host) => `${host} ends the connection before it answers`],
  ['tls', (host) => `the certificate of ${host} is not accepted`],
  ['proxy', () => 'the proxy on the way cannot be reached, or refuses'],
  ['bad_response', (host) => `what ${host} answers is not HTTP, or too long`],
  ['forbidden', (host) => `${host} is an address that may not be sent to (delivery.allowNetworks)`],
  ['network', (host) => `the network on the way to ${host} fails`],
])

/** Whether an endpoint has accepted nothing since the first of these failures. */
export function refusesAll({ health: { lastSuccessAtMs } }: EndpointState, { firstAtMs }: FailureGroup): boolean {
  return lastSuccessAtMs === null || lastSuccessAtMs < firstAtMs
}

/**
 * Explains a failure in one sentence, with the answer if there was one. `isAll`: nothing was accepted since the failures began, so the
 * endpoint refuses everything.
 */
export function explainFailure(failure: FailureGroup, url: string, isAll: boolean): Markup {
  const { status, reason, answerStart } = failure
  if (status === null) return html`No answer: ${REASONS.get(reason ?? '')?.(hostOf(url)) ?? answerWord(failure)}.`
  const start = firstLine(answerStart)
  const said: Part = start === '' ? null : html` <q class="said">${start}</q>`
  return html`It answers ${status}${said}: ${meaningOf(status, isAll)}`
}

function meaningOf(status: number, isAll: boolean): string {
  if (status >= 500) return 'it can be reached, but fails inside.'
  if (status === 401 || status === 403) return 'it does not accept the signature. Does it have the current key?'
  if (status === 410) return 'it says that it is gone for good.'
  if (status === 429) return 'it asks the relay to send less for a while.'
  if (status >= 400) return isAll ? 'it refuses these events.' : 'it refuses some events.'
  if (status >= 300) return 'it redirects; name the final URL.'
  return 'the relay takes only 200 to 299 as accepted.'
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url
}
