import { parseRetryAfter, retryAfterDefaultMs } from '../../domain/instant.ts'
import { isObject, member, readJson } from '../../domain/json-body.ts'
import type { UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import type { Relay } from '../../flow/relay-part.ts'
import type { Deadline } from '../../outbound/deadline.ts'
import { type Answered, type Exchange, type Failed, spentBy, withQuickRetries } from '../call/exchange.ts'

const BODY_BYTES_MAX = 65_536

export interface NoToken {
  readonly kind: 'none'
  readonly reason: UnavailableReason
  readonly retryAfterMs?: number
  /** A code for the log. */
  readonly detail: string
  /** The address of the token endpoint, for the log. */
  readonly url?: string
  /** Whether the failure may count against the carrier. True: this call made the request itself, and left enough time for an answer. */
  readonly conclusive: boolean
}

export type TokenOutcome =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'refused'; readonly detail: string }
  | { readonly kind: 'trouble'; readonly failure: NoToken }

export interface TokenRequestOptions extends Pick<Relay, 'clock'> {
  readonly authUrl: string
  readonly username: string
  readonly exchange: Exchange
  readonly openDeadline: () => Deadline
}

/**
 * Requests a token: `POST {authUrl}` (spec, "Authentication"). The request is a call of the budget. It has its own deadline, because callers with
 * different deadlines may wait for it.
 */
export async function requestToken(options: TokenRequestOptions, password: string): Promise<TokenOutcome> {
  const deadline = options.openDeadline()
  const { authUrl: url, username, exchange, clock } = options
  const spend = spentBy('token')
  const ask = (): Promise<Answered | Failed> =>
    exchange({
      method: 'POST',
      url,
      headers: () => ({ 'content-type': 'application/json', accept: 'application/json', 'accept-encoding': 'identity' }),
      body: JSON.stringify({ username, password }),
      bodyBytesMax: BODY_BYTES_MAX,
      // The calls of apps may also wait for this token, so it goes before scheduled polls.
      priority: 'app',
      spender: spend(),
      giveUpAtMs: null,
      deadline,
    })
  try {
    return readTokenOutcome(await withQuickRetries(ask, deadline.signal), clock.now())
  } finally {
    deadline.end()
  }
}

function readTokenOutcome(answer: Answered | Failed, nowMs: number): TokenOutcome {
  const trouble = (reason: UnavailableReason, detail: string, retryAfterMs?: number | null, conclusive = true): TokenOutcome => {
    const wait = retryAfterMs === undefined || retryAfterMs === null ? {} : { retryAfterMs }
    return { kind: 'trouble', failure: { kind: 'none', reason, detail, conclusive, ...wait } }
  }
  if (answer.kind === 'failed') {
    const reason = answer.reason === 'bad_response' ? 'token_bad_response' : answer.reason
    return trouble(reason, answer.detail, answer.retryAfterMs, answer.conclusive)
  }
  const { status } = answer
  const detail = `token endpoint: ${status}`
  if ([400, 401, 403].includes(status)) return { kind: 'refused', detail }
  const retryAfterMs = parseRetryAfter(answer.header('retry-after'), nowMs)
  if (status === 429) return trouble('rate_limited', detail, retryAfterMs ?? retryAfterDefaultMs)
  if (status >= 500) return trouble('server_error', detail, retryAfterMs)
  if (status >= 300) return trouble(status < 400 ? 'redirect' : 'token_bad_response', detail)
  const token = parseTokenAnswer(answer.body)
  return token === null ? trouble('token_bad_response', detail) : { kind: 'token', token }
}

const TOKEN = /^[\x21-\x7e]{1,8192}$/

/**
 * Parses the answer of the token endpoint (spec, "POST {base_url}/auth/token"). Null: it contains no token that can be sent in a header, for example
 * because the token has a line break.
 */
export function parseTokenAnswer(body: Uint8Array): string | null {
  const reading = readJson(body)
  if (!reading.ok || !isObject(reading.value)) return null
  const token = member(reading.value, 'token')
  return typeof token === 'string' && TOKEN.test(token) ? token : null
}

/**
 * Returns the expiry time in a token that is a JWT, epoch milliseconds; null: the token is no JWT or states no time. It is only a hint when to renew:
 * the relay does not verify the token, and the spec promises no format.
 */
export function readExpiryHint(token: string): number | null {
  const [, payload, signature, ...more] = token.split('.')
  if (payload === undefined || signature === undefined || more.length > 0) return null
  const reading = readJson(Buffer.from(payload, 'base64url'))
  if (!reading.ok || !isObject(reading.value)) return null
  const exp = member(reading.value, 'exp')
  return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : null
}
