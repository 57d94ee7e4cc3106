import { request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { getCACertificates } from 'node:tls'
import { type Command, Option } from 'commander'
import { readCertificates } from '../../../core/config/named-file.ts'
import { systemCode } from '../../../core/domain/errors.ts'
import { parseTypedIdentifier } from '../../../core/domain/identifiers.ts'
import { tlsFaultOf, tlsMeaning, tlsRemedy } from '../../../core/domain/system-reason.ts'
import { suggestName } from '../../../core/domain/text.ts'
import type { PageAnswer } from '../../../core/http/server/answer-schemas.ts'
import type { ListedParcelAnswer } from '../../parcels/parcels.routes.ts'
import { CommandFailure } from '../exit-codes.ts'

export interface ClientOptions {
  readonly url: string
  /** A PEM file with a private CA. */
  readonly ca?: string
  /** The certificate (PEM) that the relay must show. It may be for another host name than that of the URL. */
  readonly pinned?: string | undefined
  readonly username?: string
  readonly password?: string
  readonly json?: boolean
}

const DEFAULT_URL = 'http://127.0.0.1:8081'

/** What scope a command needs: that of the routes that it asks. An object: the scope status, and admin only for what it names. */
export type NeededScope = 'admin' | 'status' | { readonly adminFor: string }

/** Adds the options to reach a running relay. The password comes only from the environment, because `ps` shows command lines to every user. */
export function addRelayOptions(command: Command, scope: NeededScope = 'admin'): Command {
  const needed = typeof scope === 'string' ? scope : `status (${scope.adminFor}: admin)`
  return command
    .addOption(new Option('--url <address>', "the running relay's internal listener").default(DEFAULT_URL).env('RELAY_URL'))
    .addOption(new Option('--ca <file>', 'PEM file with the private authority of its certificate').env('RELAY_CA'))
    .addOption(
      new Option('--username <name>', `an app with the scope ${needed}; its password is read from RELAY_PASSWORD`).env('RELAY_USERNAME'),
    )
    .addOption(new Option('--password <password>').env('RELAY_PASSWORD').hideHelp())
    .addOption(new Option('--json', 'print JSON'))
    .hook('preAction', (_, action) => {
      if (action.getOptionValueSource('password') === 'cli') action.error('set the password in RELAY_PASSWORD, not on the command line')
    })
}

/** Adds the options to reach a running relay, and an action that asks it. */
export function asking<Given extends unknown[]>(
  command: Command,
  action: (ask: AskRelay, ...given: Given) => Promise<void>,
  scope: NeededScope = 'admin',
): Command {
  return addRelayOptions(command, scope).action(
    async (...given: Given) => await action(await openRelay(command.opts<ClientOptions>()), ...given),
  )
}

/** A body with the type that the schema of the answer gives it, or a problem. */
export type RelayAnswer<Body = unknown> = GoodAnswer<Body> | Refusal

interface GoodAnswer<Body> {
  readonly ok: true
  readonly status: number
  readonly body: Body
}

export interface Refusal {
  readonly ok: false
  readonly status: number
  readonly body: Problem
}

/** What a problem document (RFC 9457) may say. A proxy on the way says nothing of it. */
interface Problem {
  readonly type?: string
  readonly detail?: string
  readonly problems?: readonly string[]
  readonly oldestSequence?: number
  readonly lastSequence?: number
}

/**
 * Sends a request to a running relay as an operator. `Body`: the type of the answer, from the schema of its route. If the relay cannot be reached,
 * rejects with a message for the user.
 */
export type AskRelay = <Body>(
  method: string,
  path: string,
  body?: { readonly type: string; readonly text: string },
) => Promise<RelayAnswer<Body>>

/** @param read parses the body of an answer in JSON; throws if it is none */
export async function openRelay(
  { username = '', password = '', ...options }: ClientOptions,
  read: (text: string) => unknown = JSON.parse,
): Promise<AskRelay> {
  if (username === '' || password === '') {
    throw new Error('set RELAY_USERNAME and RELAY_PASSWORD to the login of an app; --help says which scope it needs')
  }
  const url = relayAddress(options)
  const trust = { ca: authorityIn(options.ca), pinned: options.pinned, timeoutMs: TIMEOUT_MS, read }
  const logIn = async (): Promise<string> => {
    const headers = { 'content-type': 'application/json' }
    const sent = { method: 'POST', headers, body: JSON.stringify({ username, password }), ...trust }
    const login = await request<{ readonly token?: string }>(`${url}/auth/token`, sent)
    if (login.ok && login.body.token !== undefined) return login.body.token
    throw new Error(login.status === 404 ? await describeStranger(url, options) : `the relay refuses the login: ${describeProblem(login)}`)
  }
  let token = await logIn()
  return async <Body>(...[method, path, body]: Parameters<AskRelay>) => {
    const send = async () => {
      const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': body.type }) }
      return await request<Body>(`${url}${path}`, { method, headers, ...(body === undefined ? {} : { body: body.text }), ...trust })
    }
    const answer = await send()
    if (answer.status !== 401) return answer
    // A token expires after an hour, and some commands run longer.
    token = await logIn()
    return await send()
  }
}

/** The longest wait for an answer. The relay may need minutes for a long list. */
const TIMEOUT_MS = 300_000
const ALIVE_MS = 5000

/** Returns the URL without a slash at its end. An address without a scheme, such as 127.0.0.1:8081, gets `https` if `ca` is set, else `http`. */
export function relayAddress({ url, ca = '' }: Pick<ClientOptions, 'url' | 'ca'>): string {
  const given = url.trim() === '' ? DEFAULT_URL : url.trim()
  const address = given.includes('://') ? given : `${ca === '' ? 'http' : 'https'}://${given}`
  if (!/^https?:/i.test(address) || !URL.canParse(address))
    throw new Error(`--url must be an address such as ${DEFAULT_URL}, and is ${given}`)
  const { origin, pathname } = new URL(address)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}

function authorityIn(file = ''): string | undefined {
  return file === '' ? undefined : readCertificates('RELAY_CA', file)
}

/** Checks whether a relay answers. Resolves with null if it does, otherwise with the reason. */
export async function lookForRelay(options: Pick<ClientOptions, 'url' | 'ca' | 'pinned'>): Promise<Error | null> {
  const url = relayAddress(options)
  const trust = { ca: authorityIn(options.ca), pinned: options.pinned }
  try {
    const answer = await sendRequest(`${url}/healthz`, { method: 'GET', ...trust, timeoutMs: ALIVE_MS })
    const isRelay = isGood<{ readonly status?: string }>(answer) && answer.body.status === 'ok'
    return isRelay ? null : new Error(`what answers at ${url} is not a relay`)
  } catch (cause) {
    return unreachable(url, cause)
  }
}

/** Describes what answers at an address whose login path gives 404. */
async function describeStranger(url: string, options: ClientOptions): Promise<string> {
  const stranger = await lookForRelay(options)
  if (stranger !== null) return stranger.message
  return `${url} is the public listener of a relay, which only takes pushes. Commands ask its internal listener (listen.internal, usually port 8081): name that with --url or in RELAY_URL`
}

async function request<Body>(url: string, sent: RequestToSend): Promise<RelayAnswer<Body>> {
  const answer = await sendRequest(url, sent).catch((cause: unknown) => {
    throw unreachable(url, cause)
  })
  if (isGood<Body>(answer)) return { ok: true, ...answer }
  const { status, body } = answer
  return { ok: false, status, body: typeof body === 'object' && body !== null ? body : {} }
}

/** A relay's answer has the type of its schema, which tests compare with what relays answer. */
function isGood<Body>(answer: Answer): answer is Answer & { readonly body: Body } {
  return answer.status < 300
}

/** Sends a request, with a body as JSON, and returns the body of the answer. If the relay refuses it, the command fails with the relay's reason. */
export async function order<Body>(ask: AskRelay, method: string, path: string, body?: object): Promise<Body> {
  const answer = await ask<Body>(method, path, body && { type: 'application/json', text: JSON.stringify(body) })
  if (answer.ok) return answer.body
  throw new CommandFailure(describeProblem(answer))
}

/** Prints an answer: with `--json` as it is, else in words. */
export function print({ json }: Pick<ClientOptions, 'json'>, body: unknown, text: string): void {
  process.stdout.write(json === true ? `${JSON.stringify(body)}\n` : text)
}

/** Encodes an identifier that a person typed or copied, for use in a URL. Other text is passed on, and the relay refuses it. */
export function typedIdentifier(text: string): string {
  return encodeURIComponent(typedIdentifierText(text))
}

/** Like `typedIdentifier`, but for the body of a request. */
export function typedIdentifierText(text: string): string {
  return parseTypedIdentifier(text) ?? text
}

/** Returns the relay's own description of the problem; without one, the status code. */
export function describeProblem(answer: RelayAnswer): string {
  return (answer.ok ? undefined : answer.body.detail) ?? `status ${answer.status}`
}

interface RequestToSend {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** A private certificate authority (PEM), trusted in addition to the public authorities. */
  readonly ca?: string | undefined
  /** The only certificate (PEM) to accept, even if it is for another host name. Absent: any trusted certificate for the host name. */
  readonly pinned?: string | undefined
  /** The request fails when the connection was silent for this long. */
  readonly timeoutMs: number
  /** Parses a body in JSON; absent: as JSON.parse. */
  readonly read?: (text: string) => unknown
}

interface Answer {
  readonly status: number
  /** The body, parsed if it is JSON, else as text. */
  readonly body: unknown
}

/** Sends a request. Rejects on a redirect or an incomplete answer. (`fetch` is no option, because it cannot trust a private authority.) */
async function sendRequest(
  url: string,
  { method, headers = {}, body, timeoutMs, read = JSON.parse, ...trust }: RequestToSend,
): Promise<Answer> {
  const { status, type, text } = await new Promise<{ status: number; type: string; text: string }>((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const options = { method, headers: { ...headers, ...length }, timeout: timeoutMs, agent: false } as const
    const request = url.startsWith('https:') ? tlsRequest(url, { ...options, ...tlsOptionsOf(trust) }) : plainRequest(url, options)
    request.on('response', (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, type: response.headers['content-type'] ?? '', text: Buffer.concat(parts).toString() })
      })
    })
    request.on('timeout', () => request.destroy(new Error('it sends nothing')))
    request.on('error', reject)
    request.end(body)
  })
  if (status >= 300 && status < 400) throw new Error('the server there answers with a redirect')
  return { status, body: type.includes('json') ? parse(text, read) : text }
}

function parse(text: string, read: (text: string) => unknown): unknown {
  try {
    return read(text)
  } catch (cause) {
    throw new Error('the server there sends no valid JSON', { cause })
  }
}

function tlsOptionsOf({ ca, pinned }: Pick<RequestToSend, 'ca' | 'pinned'>) {
  if (pinned !== undefined) return { ca: [pinned], allowPartialTrustChain: true, checkServerIdentity: () => undefined }
  return ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }
}

/** For each error code: why no answer came, and what to do. */
const REASONS: readonly (readonly [codes: RegExp, reason: (url: URL) => string])[] = [
  [/^HPE_/, ({ host }) => `what answers there is not HTTP. With TLS its address begins with https://${host}`],
  [/^ECONNREFUSED$/, () => 'nothing listens there. Is it running, and is this its internal listener (listen.internal)?'],
  [/^(?:ENOTFOUND|EAI_)/, ({ hostname }) => `the name ${hostname} is not found`],
  [/^ECONNRESET$/, ({ host }) => `the connection was ended without an answer. With TLS its address begins with https://${host}`],
  [/^(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/, () => 'there is no route to it: look at the address, the network and the firewall'],
]

/** Returns the error for a request that got no complete answer. Its message says what to do next. */
function unreachable(address: string, cause: unknown): Error {
  const url = new URL(address)
  const code = systemCode(cause) ?? ''
  const fault = tlsFaultOf(code)
  const known = REASONS.find(([codes]) => codes.test(code))?.[1](url)
  const reason =
    (fault === null ? known : `${tlsMeaning(fault, url.host)}. ${tlsRemedy(fault, '--ca or RELAY_CA')}`.replace(/\.$/, '')) ??
    `${cause instanceof Error && code === '' ? cause.message : 'the connection failed'}. Is this its internal listener (listen.internal)?`
  return new Error(`no relay answers at ${url.origin}: ${reason}`, { cause })
}

/** At most this many identifiers are compared with a mistyped one. */
const CANDIDATES_MAX = 200
/** To find similar identifiers, parcels are first searched by all characters but the last two, which may be mistyped. */
const ENDING = 2
const BEGINNING_MIN = 3

/** Describes why a parcel was not found, and what to type next. For another problem, returns the relay's own description. */
export async function describeParcelProblem(ask: AskRelay, identifier: string, answer: Refusal): Promise<string> {
  if (answer.status !== 404) return `${identifier}: ${describeProblem(answer)}`
  const detail = describeProblem(answer)
  const known = detail.startsWith('No parcel has this identifier') ? 'no parcel has this identifier' : detail.replace(/\.$/, '')
  const typed = typedIdentifierText(identifier)
  const near = await nearestIdentifier(ask, typed)
  const hint = near === null ? '' : `; did you mean ${near}?`
  return `${identifier}: ${known}${hint === '' ? '.' : hint} "parcel-relay parcels ${typed.slice(0, 4)}" lists those that begin like it, "parcel-relay watch ${typed}" makes the relay poll it`
}

async function nearestIdentifier(ask: AskRelay, typed: string): Promise<string | null> {
  const folded = typed.toUpperCase()
  const beginnings = [
    folded.slice(0, Math.max(BEGINNING_MIN, folded.length - ENDING)),
    folded.slice(0, Math.max(BEGINNING_MIN, folded.length >> 1)),
  ]
  for (const beginning of beginnings) {
    const path = `/relay/parcels?limit=${CANDIDATES_MAX}&query=${encodeURIComponent(beginning)}`
    const page = await ask<PageAnswer<'parcels', ListedParcelAnswer>>('GET', path)
    const known = page.ok ? page.body.parcels.flatMap(({ identifiers }) => identifiers) : []
    const near = suggestName(folded, known)
    if (near !== null) return near
  }
  return null
}

/** Describes why a delivery was not found, and what to type next. `instead`: makes the command for all deliveries of the named endpoint. */
export async function describeDeliveryProblem(
  ask: AskRelay,
  id: string,
  answer: Refusal,
  instead: (name: string) => string,
): Promise<string> {
  if (answer.status !== 404) return `${id}: ${describeProblem(answer)}`
  const named = await ask<PageAnswer<'endpoints', { readonly name: string }>>(
    'GET',
    `/relay/endpoints?limit=1&name=${encodeURIComponent(id)}`,
  )
  const endpoint = named.ok ? named.body.endpoints[0] : undefined
  if (endpoint !== undefined)
    return `no delivery has the id ${id}, which is the name of an endpoint: "parcel-relay ${instead(quoted(endpoint.name))}"`
  return `no delivery has the id ${id}: "parcel-relay deliveries" lists the ids`
}

/** Quotes a name for a shell, if necessary. */
function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`
}
