import { randomUUID } from 'node:crypto'
import { request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import type { Verdict } from '../../console/problems/concern.ts'
import type { CallFailure, RemoteCarrier } from '../../core/carrier/call/carrier-client.ts'
import { causeIn } from '../../core/carrier/call/carrier-log.ts'
import type { FailureReason } from '../../core/domain/delivery/delivery.ts'
import type { Route } from '../../core/domain/delivery/delivery-request.ts'
import { checkPushBody } from '../../core/domain/ingest/parse-push.ts'
import { signBody } from '../../core/domain/ingest/signature.ts'
import {
  type CarrierState,
  carrierRemedy,
  carrierStanding,
  lacksAnswer,
  lastFailureText,
  type UnavailableReason,
} from '../../core/domain/polling/carrier-answer.ts'
import { describeFailure, isTlsFault, reasonOfCode, tlsFaultOf, tlsMeaning, tlsRemedy } from '../../core/domain/system-reason.ts'
import type { Destination, NoConnection } from '../../core/outbound/try-connection.ts'
import { type CheckLine, failed, judgeClock, ok, type Probe, skipped, warning } from './check.rules.ts'

export interface CarrierProbeOptions {
  /** The language of polls. */
  readonly language: string
  /** Returns a parcel that the carrier has answered before; null: none is known. */
  readonly known: () => Promise<string | null>
  /** The setting that says where the carrier issues tokens. */
  readonly loginSetting: LoginSetting
  /** A text to add to the line of the login. */
  readonly note?: string
}

type LoginSetting = 'upstream.authUrl' | 'upstream.baseUrl'

/** Returns the setting that is in force: without `authUrl`, tokens are asked for below `baseUrl`. */
export function loginSettingOf({ authUrl, baseUrl }: { readonly authUrl: string; readonly baseUrl: string }): LoginSetting {
  return authUrl === `${baseUrl}/auth/token` ? 'upstream.baseUrl' : 'upstream.authUrl'
}

/**
 * Makes the probe that logs in at the carrier, asks it one question, and compares the clocks. That is two calls of the budget at most, because a
 * login alone does not show that questions are answered.
 */
export function carrierProbe(
  carrier: Pick<RemoteCarrier, 'logIn' | 'tryQuestion' | 'state' | 'aheadMs'>,
  { language, known, loginSetting, note = '' }: CarrierProbeOptions,
): Probe {
  return {
    name: 'credentials',
    subject: null,
    async look() {
      const failure = await carrier.logIn()
      const login = failure === null ? ok(`The carrier gives a token.${note}`) : describe(failure, loginSetting)
      const question =
        failure === null ? await ask(carrier, language, await known()) : skipped('Nothing was asked, because there is no token.')
      return [
        { name: 'credentials', subject: null, ...login },
        { name: 'question', subject: null, ...question },
        { name: 'clock', subject: null, ...judgeClock(carrier.aheadMs()) },
      ]
    },
  }
}

/** Formed like the number of an international parcel, with its check digit, but of a country that does not exist. */
const NOBODYS = 'ZZ000000005ZZ'

/** A carrier may answer a number that nobody has with an error, and all others well. So only a question about a known parcel can fail so. */
async function ask(carrier: Pick<RemoteCarrier, 'tryQuestion' | 'state'>, language: string, known: string | null): Promise<Verdict> {
  const { sinceMs } = carrier.state().breaker
  const failure = await carrier.tryQuestion({ identifier: known ?? NOBODYS, language, mayCount: known !== null })
  const about = known === null ? `a number that nobody has (${NOBODYS})` : 'a parcel that it has answered before'
  if (failure === null) return judgeAnswer(carrier.state(), about)
  const { reason, detail } = failure
  const last = { reason, ...causeIn(detail) }
  const isNamed = last.tls !== undefined || last.status !== undefined
  const why = isNamed ? lastFailureText(last) : `${lastFailureText(last)} (${reasonOfCode(detail)})`
  if (lacksAnswer(reason) === null) return skipped(`No answer to a question about ${about}: ${why}.`)
  if (known === null && (reason === 'server_error' || (reason === 'rejected' && !DENIALS.has(detail))))
    return warning(
      `No answer to a question about ${about}: ${why}. Perhaps it has no other answer to such a number: check again when a parcel was polled.`,
    )
  const since = sinceMs === undefined ? '' : ` It has answered no question since ${new Date(sinceMs).toISOString()}.`
  return failed(`No answer to a question about ${about}: ${why}. ${carrierRemedy(last)}${since}`)
}

/** While parcels are refused, an answer about a number that nobody has does not show that the carrier answers. */
function judgeAnswer(state: CarrierState, about: string): Verdict {
  const { kind } = carrierStanding(state)
  if (state.lastFailure === null || (kind !== 'failing' && kind !== 'troubled')) return ok(`The carrier answers a question about ${about}.`)
  const why = lastFailureText(state.lastFailure)
  return failed(
    `The carrier answers a question about ${about}, but refuses those about parcels: ${why}. ${carrierRemedy(state.lastFailure)}`,
  )
}

/** With these answers a carrier denies everything, whatever is asked. */
const DENIALS: ReadonlySet<string> = new Set(['status 401', 'status 403'])

/** In these sentences, `LOGIN` stands for the setting that says where the carrier issues tokens. */
const REASONS: Readonly<Record<UnavailableReason, string>> = {
  budget: 'No call is left in the budget',
  resting: 'The carrier failed so often that the relay asks it nothing for a while',
  credentials: 'The carrier refuses the login: correct upstream.username and upstream.password',
  timeout: 'The carrier did not answer within upstream.timeout. Check LOGIN, and look for a firewall',
  network: 'The carrier cannot be reached. Check LOGIN, and look for a firewall',
  rate_limited: 'The carrier has had too many calls',
  server_error: 'The carrier fails',
  redirect: 'The carrier redirects: name the final address in LOGIN',
  bad_response: 'The answer does not look like one of the carrier. Check LOGIN',
  token_bad_response: 'The answer contains no token. Check LOGIN',
  rejected: 'The carrier refuses the request',
}

function describe({ reason, detail }: CallFailure, loginSetting: LoginSetting): Verdict {
  // This is no fault of the deployment: other calls have used up the budget, or fill the queue.
  if (reason === 'budget') return skipped(`${REASONS[reason]} (${detail}).`)
  const fault = tlsFaultOf(detail)
  if (fault !== null) return failed(`No token was asked for: ${tlsMeaning(fault, 'the carrier')}. ${tlsRemedy(fault, 'upstream.caFile')}`)
  return failed(`${REASONS[reason].replace('LOGIN', loginSetting)} (${reasonOfCode(detail)}).`)
}

interface PushProbeOptions {
  /** The address of the public listener, with the port that it really has. */
  readonly publicUrl: string
  readonly path: string
  /** The first of `webhook.sharedKeys`. */
  readonly key: string
}

const TIMEOUT_MS = 10_000

/** Makes the probe that sends a signed push to the relay itself. The body says that it is only a check, so the push is counted but not stored. */
export function pushProbe(options: () => PushProbeOptions): Probe {
  return { name: 'push', subject: null, look: async () => await push(options()) }
}

async function push({ publicUrl, path, key }: PushProbeOptions): Promise<Verdict> {
  const body = checkPushBody(randomUUID())
  const url = new URL(path, publicUrl)
  // These addresses stand for all addresses of the machine. Connect to the local one.
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1'
  if (url.hostname === '[::]') url.hostname = '[::1]'
  const status = await post(url, body, signBody(Buffer.from(body), key)).catch((error: unknown) =>
    failed(`The public listener does not answer this machine (${describeFailure(error)}).`),
  )
  if (typeof status !== 'number') return status
  if (status === 200) return ok('A signed push to this relay is verified and answered with 200.')
  if (status === 503)
    return failed(
      'Pushes are refused now: a signed push to this relay is answered with 503. The lines `store` and `disk`, or the log, say why.',
    )
  return failed(`A signed push to this relay is answered with ${status}.`)
}

function post(url: URL, body: string, signature: string): Promise<number> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), 'x-service-hmac-sha256': signature }
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, timeout: TIMEOUT_MS, agent: false } as const
    // Do not check the certificate: it names the host that the carrier uses, not the address used here. The push contains nothing secret.
    const request = url.protocol === 'https:' ? tlsRequest(url, { ...options, rejectUnauthorized: false }) : plainRequest(url, options)
    request.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    request.on('timeout', () => request.destroy(new Error('timeout')))
    request.on('error', reject)
    request.end(body)
  })
}

export interface EndpointToTry {
  readonly name: string
  readonly url: string
  readonly enabled: boolean
  /** What the running relay knows to be wrong with the endpoint, as a sentence; null: nothing is wrong, or no relay was asked. */
  readonly trouble: string | null
  /** Returns how to reach the endpoint. If a file cannot be used, throws an error that names the setting. */
  readonly route: () => Route
}

/** Connects to an endpoint. Resolves with the reason if that fails; null: the connection was made. */
export type ConnectTo = (to: Destination) => Promise<NoConnection | null>

/** The most endpoints that are tried. More would take minutes. */
const TRIED_MAX = 200

/** Makes the probes that connect to each endpoint, without sending anything. */
export function endpointProbes(endpoints: readonly EndpointToTry[], connect: ConnectTo): readonly Probe[] {
  const probes = endpoints.slice(0, TRIED_MAX).map(
    (endpoint): Probe => ({
      name: 'endpoint',
      subject: endpoint.name,
      async look() {
        if (!endpoint.enabled) return endpoint.trouble === null ? skipped('It is disabled.') : warning(endpoint.trouble)
        const to = { url: endpoint.url, route: endpoint.route() }
        const verdict = describeConnection(to, await connect(to))
        if (endpoint.trouble === null) return verdict
        return { state: verdict.state === 'ok' ? 'warning' : verdict.state, message: `${verdict.message} ${endpoint.trouble}` }
      },
    }),
  )
  if (endpoints.length <= TRIED_MAX) return probes
  const rest: CheckLine = {
    name: 'endpoint',
    subject: null,
    ...skipped(`${endpoints.length - TRIED_MAX} more were not tried.`),
  }
  return [...probes, { name: 'endpoint', subject: null, look: async () => [rest] }]
}

const UNREACHED: Partial<Record<FailureReason, string>> = {
  forbidden: 'The relay may not send to this address: list it in delivery.allowNetworks',
  dns: 'Its host has no address',
  connection_refused: 'Nobody listens there',
  reset: 'It closes the connection',
  timeout: 'It does not answer',
  proxy: 'Its proxy cannot be reached',
}

function describeConnection({ url, route }: Destination, failure: NoConnection | null): Verdict {
  const { host } = new URL(url)
  if (failure === null) return ok(route.proxy === undefined ? `${host} takes connections.` : `The proxy to ${host} takes connections.`)
  if (isTlsFault(failure.reason)) return failed(`${host}: ${tlsMeaning(failure.reason, host)}. ${tlsRemedy(failure.reason, 'caFile')}`)
  return failed(`${host}: ${UNREACHED[failure.reason] ?? `It cannot be reached: ${reasonOfCode(failure.detail)}`}.`)
}
