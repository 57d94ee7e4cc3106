import type { CarrierState } from '../domain/polling/carrier-answer.ts'
import type { CredentialRefusal } from '../domain/polling/carrier-memory.ts'
import type { Clock } from '../flow/ports.ts'
import { orWhenAborted } from '../outbound/deadline.ts'
import { type CredentialOptions, openCredentials, readPassword } from './credentials.ts'
import { readExpiryHint } from './token-answer.ts'
import { type NoToken, requestToken, type TokenRequestOptions } from './token-request.ts'

/** An `exp` nearer than this is no use as a hint: renewing for it would be renewing all the time. */
const HINT_MIN_MS = 10_000
const RENEW_AHEAD_MAX_MS = 60_000

export type TokenResult = { readonly kind: 'token'; readonly token: string } | NoToken

/** The carrier's bearer token: one request however many need it, kept until it is refused or says it will end (DOMAIN 6.5). */
export interface TokenClient {
  get(signal: AbortSignal): Promise<TokenResult>
  /** The newest token, without asking for one. */
  current(): string | null
  /** The status API refused this token: gets another, unless there is another already. */
  renew(rejected: string, signal: AbortSignal): Promise<TokenResult>
  /** The status API refused this token, and another would be no better: the credentials count as refused. */
  refuse(rejected: string): NoToken
  /** The status API accepted this token. */
  prove(token: string): void
  credentials(): CarrierState['credentials']
  /** For the next run; null: the credentials are not refused. */
  refusal(): CredentialRefusal | null
  /** For the next run, monotonic: until when the token endpoint asked to be left alone. */
  pausedUntilMs(): number
}

export interface TokenClientOptions extends TokenRequestOptions, CredentialOptions {
  /** Called when they are refused, or no longer, and when the endpoint asks to be left alone: that must outlive a crash. */
  readonly keep: () => Promise<unknown>
}

interface Held {
  readonly token: string
  /** Monotonic; `null`: kept until it is refused. */
  readonly renewAtMs: number | null
}

const WAITED_TOO_LONG: NoToken = { kind: 'none', reason: 'timeout', detail: 'token_wait', conclusive: false }
const PASSWORD_UNREADABLE: NoToken = { kind: 'none', reason: 'credentials', detail: 'password_unreadable', conclusive: false }

/**
 * Without a token, needing one asks for one, unless the gate is closed. With one, it serves until the status API refuses it; when its hint
 * of an end draws near it is renewed in the background, and whatever becomes of that the token in hand serves on. Refused is what either
 * side says of the credentials; only a status answer to a token obtained since takes that back.
 */
export function createTokenClient(options: TokenClientOptions): TokenClient {
  const { clock, log } = options
  const credentials = openCredentials(options)
  let held: Held | null = null
  let flight: Promise<TokenResult> | null = null

  const present = async (): Promise<TokenResult> => {
    const password = readPassword(options.password)
    if (password === null) return credentials.troubled(PASSWORD_UNREADABLE)
    credentials.present(password)
    const result = await requestToken(options, password)
    if (result.kind === 'trouble' && !result.failure.conclusive) return result.failure
    if (result.kind !== 'token') {
      const none = result.kind === 'refused' ? credentials.notTaken(result.detail) : credentials.troubled(result.failure)
      // Before anybody hears of it: a crash right after must not forget the try, nor the wait that was asked for.
      if (result.kind === 'refused' || result.failure.retryAfterMs !== undefined) await options.keep()
      return none
    }
    credentials.obtained()
    held = { token: result.token, renewAtMs: renewalTime(result.token, clock) }
    return result
  }
  const request = (): Promise<TokenResult> => {
    const reason = flight === null ? credentials.closed() : null
    if (reason !== null) return Promise.resolve(reason)
    // Of all who wait for one request, one hears what it tells.
    if (flight !== null) return flight.then((result) => (result.kind === 'token' ? result : { ...result, conclusive: false }))
    flight = present().finally(() => {
      flight = null
    })
    return flight
  }

  return {
    async get(signal) {
      if (held === null) return orWhenAborted(request(), signal, WAITED_TOO_LONG)
      const { token, renewAtMs } = held
      if (renewAtMs !== null && clock.monotonic() >= renewAtMs) request().catch(() => log.error({}, 'renewing the token failed'))
      return { kind: 'token', token }
    },
    current: () => held?.token ?? null,
    async renew(rejected, signal) {
      if (held?.token === rejected) held = null
      return held === null ? orWhenAborted(request(), signal, WAITED_TOO_LONG) : { kind: 'token', token: held.token }
    },
    refuse(rejected) {
      // Of many questions refused with the same token only the first counts.
      if (held?.token !== rejected)
        return credentials.closed() ?? { kind: 'none', reason: 'credentials', detail: 'refused', conclusive: false }
      held = null
      const none = credentials.refused('status API: 401')
      void options.keep()
      return none
    },
    prove(token) {
      if (held?.token === token && credentials.proved()) void options.keep()
    },
    credentials: credentials.state,
    pausedUntilMs: credentials.pausedUntilMs,
    refusal: credentials.refusal,
  }
}

/** Wall time decides how long the token has, monotonic time when that is over: a corrected clock renews nothing early or late. */
function renewalTime(token: string, clock: Clock): number | null {
  const expiresAtMs = readExpiryHint(token)
  const leftMs = expiresAtMs === null ? 0 : expiresAtMs - clock.now()
  return leftMs < HINT_MIN_MS ? null : clock.monotonic() + leftMs - Math.min(RENEW_AHEAD_MAX_MS, leftMs * 0.2)
}
