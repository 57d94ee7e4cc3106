import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Faults, TokenForm } from './options.ts'
import { pick, randomFor } from './parcel-plan.ts'
import { type Language, languages } from './vocabulary.ts'
import type { World } from './world.ts'

/** The answer of a route. `json`: the body as text. */
export interface Answer {
  readonly status: number
  readonly json: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Call {
  readonly method: string
  /** The path as sent, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly authorization: string | undefined
  /** Reads the body and parses it as JSON. Undefined: it is not JSON, or too large. */
  readonly body: () => Promise<unknown>
}

const bodyBytesMax = 65_536

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) return undefined
    bytes += chunk.length
    if (bytes > bodyBytesMax) return undefined
    chunks.push(chunk)
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return value
  } catch {
    return undefined
  }
}

export function callOf(request: IncomingMessage): Call {
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  return {
    method: request.method ?? '',
    path,
    query: new URLSearchParams(query),
    authorization: request.headers.authorization,
    body: () => readJson(request),
  }
}

export function send(response: ServerResponse, { status, json, headers }: Answer): void {
  const body = Buffer.from(json, 'utf8')
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': body.length, ...headers })
  response.end(body)
}

export function answerOf(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, json: JSON.stringify(value), headers }
}

/** The carrier's specification shows no error answers, so this shape is invented. */
export function errorAnswer(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return answerOf(status, { message }, headers)
}

/** Returns a member of a JSON object. Undefined: the value is not an object, or has no such member. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
}

export type Tokens = ReturnType<typeof createTokens>

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function jwt(key: Buffer, issuedMs: number, lifetimeMs: number, id: number): string {
  const head = encode({ alg: 'HS256', typ: 'JWT' })
  const claims = encode({ iat: Math.floor(issuedMs / 1000), exp: Math.floor((issuedMs + lifetimeMs) / 1000), jti: String(id) })
  return `${head}.${claims}.${createHmac('sha256', key).update(`${head}.${claims}`).digest('base64url')}`
}

/** Creates the issuer of tokens. A token is good if it was issued here and is younger than the lifetime, whatever its `exp` says. */
export function createTokens(form: TokenForm, lifetimeMs: () => number, now: () => number) {
  const key = randomBytes(32)
  const issuedAtMs = new Map<string, number>()
  let issued = 0
  return {
    issue: () => {
      issued += 1
      const token = form === 'jwt' ? jwt(key, now(), lifetimeMs(), issued) : randomBytes(24).toString('base64url')
      issuedAtMs.set(token, now())
      return token
    },
    isGood: (token: string) => {
      const atMs = issuedAtMs.get(token)
      return atMs !== undefined && now() - atMs < lifetimeMs()
    },
    revoke: () => issuedAtMs.clear(),
    issued: () => issued,
  }
}

interface CarrierApiOptions {
  readonly world: World
  readonly tokens: Tokens
  readonly username: string
  readonly password: string
  readonly seed: number
  readonly faults: () => Faults
  /** Aborted when the sandbox stops. This ends the delays of answers. */
  readonly stopping: AbortSignal
}

const statusPath = /^\/v1\/status\/([^/]+)\/(latest|all)$/

/** Returns the name under which a call to this path is counted. Null: it is not a path of the carrier's API. */
export function carrierPathOf(path: string): string | null {
  if (path === '/auth/token') return path
  const kind = statusPath.exec(path)?.[2]
  return kind === undefined ? null : `/v1/status/{number}/${kind}`
}

/** Returns the language that a call asks for. Default: the carrier's first. Null: the carrier has no texts in that language. */
function languageOf(query: URLSearchParams): Language | null {
  const asked = query.get('language')
  if (asked === null) return languages[0]
  const primary = asked.toLowerCase().split('-', 1)[0]
  return languages.find((language) => language === primary) ?? null
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** Creates the carrier's API as specified, with injected faults. It answers null to a call whose path is not part of the API. */
export function createCarrierApi(options: CarrierApiOptions): (call: Call) => Promise<Answer | null> {
  const { world, tokens, username, password, faults, stopping } = options
  const random = randomFor(options.seed, 'pull faults')

  const issueToken = async (call: Call): Promise<Answer> => {
    if (call.method !== 'POST') return errorAnswer(405, 'POST a username and a password', { Allow: 'POST' })
    const body = await call.body()
    const matches = memberOf(body, 'username') === username && memberOf(body, 'password') === password
    return matches ? answerOf(200, { token: tokens.issue() }) : errorAnswer(401, 'Unknown username or wrong password')
  }

  const unauthorized = (message: string): Answer => errorAnswer(401, message, { 'WWW-Authenticate': 'Bearer' })

  const faultOf = (): Answer | null => {
    const now = faults()
    if (random() < now.serverErrors) return errorAnswer(pick(random, [500, 502, 503]), 'Something broke')
    if (random() < now.rateLimited) return errorAnswer(429, 'Too many calls', { 'Retry-After': String(now.retryAfterSeconds) })
    return random() < now.unauthorized ? unauthorized('The token has ended') : null
  }

  const tellStatus = (call: Call, identifier: string, kind: string): Answer => {
    if (call.method !== 'GET') return errorAnswer(405, 'Only GET', { Allow: 'GET' })
    const fault = faultOf()
    if (fault !== null) return fault
    const token = /^Bearer +(\S+)$/i.exec(call.authorization ?? '')?.[1]
    if (token === undefined || !tokens.isGood(token)) return unauthorized('A valid token is needed')
    const trackingNumber = world.find(decoded(identifier) ?? '')
    if (trackingNumber === null) return errorAnswer(404, 'No such parcel')
    const json = world[kind === 'all' ? 'all' : 'latest'](trackingNumber, languageOf(call.query))
    return json === null ? errorAnswer(404, 'Nothing has happened yet') : { status: 200, json }
  }

  return async (call) => {
    if (carrierPathOf(call.path) === null) return null
    const { latencyMs } = faults()
    if (latencyMs > 0) await delay(latencyMs, undefined, { signal: stopping })
    const [, identifier, kind] = statusPath.exec(call.path) ?? []
    return identifier === undefined || kind === undefined ? issueToken(call) : tellStatus(call, identifier, kind)
  }
}
