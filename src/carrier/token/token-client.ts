import type { CarrierState } from '../../domain/polling/carrier-answer.ts'
import type { CredentialRefusal } from '../../domain/polling/carrier-memory.ts'
import type { Clock } from '../../flow/ports.ts'
import { orWhenAborted, type StartTimer } from '../../outbound/deadline.ts'
import { type CredentialOptions, openCredentials } from './credentials.ts'
import { obtainTogether, presentPassword, WAITED_TOO_LONG } from './obtain-token.ts'
import type { TokenShare } from './shared-token.ts'
import { readExpiryHint } from './token-answer.ts'
import type { NoToken, TokenRequestOptions } from './token-request.ts'

/** An `exp` that is nearer than this is ignored. Otherwise the token would be renewed all the time. */
const HINT_MIN_MS = 10_000
const RENEW_AHEAD_MAX_MS = 60_000

export type TokenResult = { readonly kind: 'token'; readonly token: string } | NoToken

/**
 * Provides the carrier's bearer token. One request serves all callers that need it, and the token is kept until it is refused or about to
 * expire (DOMAIN 6.5).
 */
export interface TokenClient {
  /** The current token, or a new one. */
  get(signal: AbortSignal): Promise<TokenResult>
  /** The current token; null: there is none. Requests nothing. */
  current(): string | null
  /** Returns a newer token, or requests one, because the status API has refused this one. */
  renew(rejected: string, signal: AbortSignal): Promise<TokenResult>
  /** Notes that the status API has refused this token and would refuse a new one too. The credentials now count as refused. */
  refuse(rejected: string): NoToken
  /** Notes that the status API has accepted this token. */
  prove(token: string): void
  /** Gets a token for the present password, even if there is a token already. */
  logIn(signal: AbortSignal): Promise<TokenResult>
  state(): Pick<CarrierState, 'credentials' | 'refusal'>
  /** Whether a refusal counts, because no later token was accepted. */
  isRationed(): boolean
  /** The refusal to save for the next run; null: none counts. */
  refusal(): CredentialRefusal | null
  /** The end of a pause that the token endpoint asked for, monotonic milliseconds, to be saved for the next run. */
  pausedUntilMs(): number
}

export interface TokenClientOptions extends TokenRequestOptions, CredentialOptions {
  /** Saves the state, which must survive a crash. Called when a refusal begins or ends, and when the endpoint asks for a pause. */
  readonly keep: () => Promise<unknown>
  /** The token that replicas share; null: this process requests tokens alone. */
  readonly share: TokenShare | null
  readonly startTimer: StartTimer
}

interface Held {
  readonly token: string
  /** When to renew the token, monotonic milliseconds; `null`: only when it is refused. */
  readonly renewAtMs: number | null
  /** The version under which replicas share the token; null: only this process has it. */
  readonly version: number | null
  /** Whether the status API has accepted the token, and the shared row says so. */
  readonly isProved: boolean
}

/**
 * Creates the token client. Without a token, the first caller requests one, unless the gate is closed. A token is used until the status API
 * refuses it. When it is about to expire it is renewed in the background, and stays in use if that fails. The credentials count as refused
 * if either side refuses them, until the status API accepts a token that was obtained since.
 */
export function createTokenClient(options: TokenClientOptions): TokenClient {
  const { clock, log, share } = options
  const credentials = openCredentials(options)
  let held: Held | null = null
  let flight: Promise<TokenResult> | null = null

  let rejected: string | null = null

  const hold = (token: string, version: number | null): void => {
    held = { token, renewAtMs: renewalTime(token, clock), version, isProved: false }
  }
  const obtain = async (): Promise<TokenResult> => {
    const { result, mustKeep } = await presentPassword(options, credentials)
    // Save before the call returns. A crash must forget neither the attempt nor a wait that was asked for.
    if (mustKeep) await options.keep()
    if (result.kind === 'token') hold(result.token, null)
    return result
  }
  const obtainShared = async (from: TokenShare): Promise<TokenResult> => {
    const result = await obtainTogether({ ...options, share: from, credentials }, held?.token ?? rejected)
    if (result.kind !== 'token') return result
    hold(result.token, result.version)
    return { kind: 'token', token: result.token }
  }
  const request = (): Promise<TokenResult> => {
    // If replicas share the credentials, the state here may be out of date. `obtainTogether` checks the shared one.
    const reason = flight === null && share === null ? credentials.closed() : null
    if (reason !== null) return Promise.resolve(reason)
    // Many callers may share one request. Only the first gets its failure as conclusive, so that it counts once.
    if (flight !== null) return flight.then((result) => (result.kind === 'token' ? result : { ...result, conclusive: false }))
    flight = (share === null ? obtain() : obtainShared(share)).finally(() => {
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
    async renew(refused, signal) {
      rejected = refused
      if (held?.token === refused) held = null
      return held === null ? orWhenAborted(request(), signal, WAITED_TOO_LONG) : { kind: 'token', token: held.token }
    },
    refuse(refused) {
      // If many calls are refused with the same token, only the first counts.
      if (held?.token !== refused)
        return credentials.closed() ?? { kind: 'none', reason: 'credentials', detail: 'refused', conclusive: false }
      const { version } = held
      held = null
      rejected = refused
      const none = credentials.tokenRefused('status API: 401')
      if (version !== null) share?.refused(version, credentials.known())
      void options.keep()
      return none
    },
    prove(token) {
      if (held?.token !== token) return
      if (credentials.proved()) void options.keep()
      const { version } = held
      if (version === null || held.isProved || credentials.isRationed()) return
      held = { ...held, isProved: true }
      share?.accepted(version)
    },
    logIn: (signal) => orWhenAborted(request(), signal, WAITED_TOO_LONG),
    state: credentials.state,
    isRationed: credentials.isRationed,
    pausedUntilMs: credentials.pausedUntilMs,
    refusal: credentials.refusal,
  }
}

/** When to renew a token. The time is monotonic, so that setting the clock makes the renewal neither too early nor too late. */
function renewalTime(token: string, clock: Clock): number | null {
  const expiresAtMs = readExpiryHint(token)
  const leftMs = expiresAtMs === null ? 0 : expiresAtMs - clock.now()
  return leftMs < HINT_MIN_MS ? null : clock.monotonic() + leftMs - Math.min(RENEW_AHEAD_MAX_MS, leftMs * 0.2)
}
