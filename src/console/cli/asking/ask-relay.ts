import { type Command, Option } from 'commander'
import { readCertificates } from '../../../core/config/named-file.ts'
import { parseTypedIdentifier } from '../../../core/domain/identifiers.ts'
import { CommandFailure } from '../exit-codes.ts'
import { type Answer, type RequestToSend, sendRequest } from './send-request.ts'
import { unreachable } from './unreachable.ts'

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

/** Adds the options to reach a running relay. The password comes only from the environment, because `ps` shows command lines to every user. */
export function addRelayOptions(command: Command): Command {
  return command
    .addOption(new Option('--url <address>', "the running relay's internal listener").default(DEFAULT_URL).env('RELAY_URL'))
    .addOption(new Option('--ca <file>', 'PEM file with the private authority of its certificate').env('RELAY_CA'))
    .addOption(
      new Option('--username <name>', 'an app with the scope admin; its password is read from RELAY_PASSWORD').env('RELAY_USERNAME'),
    )
    .addOption(new Option('--password <password>').env('RELAY_PASSWORD').hideHelp())
    .addOption(new Option('--json', 'print JSON'))
    .hook('preAction', (_, action) => {
      if (action.getOptionValueSource('password') === 'cli') action.error('set the password in RELAY_PASSWORD, not on the command line')
    })
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

export async function openRelay({ username = '', password = '', ...options }: ClientOptions): Promise<AskRelay> {
  if (username === '' || password === '') {
    throw new Error('set RELAY_USERNAME and RELAY_PASSWORD to the login of an app with the scope admin')
  }
  const url = relayAddress(options)
  const trust = { ca: authorityIn(options.ca), pinned: options.pinned, timeoutMs: TIMEOUT_MS }
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
