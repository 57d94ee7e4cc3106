import { type Command, Option } from 'commander'
import { readCertificates } from '../../config/named-file.ts'
import { parseTypedIdentifier } from '../../domain/identifiers.ts'
import { type RequestToSend, sendRequest } from './send-request.ts'

/** The address of the running relay, and the login to use. */
export interface ClientOptions {
  readonly url: string
  /** A file with a private authority (PEM). */
  readonly ca?: string
  /** The certificate (PEM) that it must show, which no name needs to fit. */
  readonly pinned?: string | undefined
  readonly username?: string
  readonly password?: string
  readonly json?: boolean
}

/** Adds the options to reach a running relay. The password comes only from the environment, because `ps` would show an argument. */
export function addRelayOptions(command: Command): Command {
  return command
    .addOption(new Option('--url <address>', "the running relay's internal listener").default('http://127.0.0.1:8081').env('RELAY_URL'))
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

export interface RelayAnswer {
  readonly status: number
  readonly body: unknown
}

/** Sends a request to a running relay as an operator. Throws an error fit to show if the relay cannot be reached. */
export type AskRelay = (method: string, path: string, body?: { readonly type: string; readonly text: string }) => Promise<RelayAnswer>

export async function openRelay({ url, ca, pinned, username, password }: ClientOptions): Promise<AskRelay> {
  if (username === undefined || password === undefined) {
    throw new Error('set RELAY_USERNAME and RELAY_PASSWORD to the login of an app with the scope admin')
  }
  const trust = { ca: authorityIn(ca), pinned, timeoutMs: TIMEOUT_MS }
  const login = await request(`${url}/auth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password }),
    ...trust,
  })
  const token = textOf(login.body, 'token')
  if (login.status !== 200 || token === null) throw new Error(`the relay refuses the login: ${describeProblem(login)}`)
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': body.type }) }
    const sent = body === undefined ? {} : { body: body.text }
    return await request(`${url}${path}`, { method, headers, ...sent, ...trust })
  }
}

/** A long list takes the relay a while. */
const TIMEOUT_MS = 300_000
const ALIVE_MS = 5000

function authorityIn(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readCertificates('RELAY_CA', file)
}

/** Whether a relay answers. */
export async function isAlive({ url, ca, pinned }: Pick<ClientOptions, 'url' | 'ca' | 'pinned'>): Promise<boolean> {
  const request = { method: 'GET', ca: authorityIn(ca), pinned, timeoutMs: ALIVE_MS }
  const answer = await sendRequest(`${url}/healthz`, request).catch(() => null)
  return answer?.status === 200 && textOf(answer.body, 'status') === 'ok'
}

async function request(url: string, sent: RequestToSend): Promise<RelayAnswer> {
  try {
    return await sendRequest(url, sent)
  } catch (cause) {
    throw new Error(`no relay answers at ${new URL(url).origin}: is it running, and is this its internal listener?`, { cause })
  }
}

/** Encodes an identifier, as a person typed or copied it, for a URL. The relay refuses text that is no identifier. */
export function typedIdentifier(text: string): string {
  return encodeURIComponent(typedIdentifierText(text))
}

/** The same for a body. */
export function typedIdentifierText(text: string): string {
  return parseTypedIdentifier(text) ?? text
}

/** The relay's own description of the problem. */
export function describeProblem({ status, body }: RelayAnswer): string {
  return textOf(body, 'detail') ?? `status ${status}`
}

export function textOf(body: unknown, name: string): string | null {
  const value = memberOf(body, name)
  return typeof value === 'string' ? value : null
}

export function memberOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? new Map<string, unknown>(Object.entries(body)).get(name) : undefined
}

export function listOf(body: unknown, name: string): readonly unknown[] {
  const value = memberOf(body, name)
  return Array.isArray(value) ? value : []
}
