import type { CarrierState } from '../domain/polling/carrier-answer.ts'
import type { CredentialRefusal } from '../domain/polling/carrier-memory.ts'
import { clampRetryAfterMs } from '../domain/retry-after.ts'
import type { Clock, Log } from '../flow/ports.ts'
import { orWhenAborted } from '../outbound/deadline.ts'
import { leftOfWait } from './carrier-ledger.ts'
import { CREDENTIAL_WAIT_MAX_MS, type CredentialGate, createCredentialGate } from './credential-gate.ts'
import { isMarked, markOf } from './password-mark.ts'
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

export interface TokenClientOptions extends TokenRequestOptions {
  readonly password: () => string
  readonly log: Log
  readonly earlier: EarlierTokens | null
  /** Called when they are refused, or no longer, and when the endpoint asks to be left alone: that must outlive a crash. */
  readonly keep: () => Promise<unknown>
}

/** What an earlier run left. */
export interface EarlierTokens {
  /** When it wrote that down, epoch milliseconds. */
  readonly atMs: number
  readonly refusal: CredentialRefusal | null
  readonly pausedForMs: number
}

interface Held {
  readonly token: string
  /** Monotonic; `null`: kept until it is refused. */
  readonly renewAtMs: number | null
}

const WAITED_TOO_LONG: NoToken = { kind: 'none', reason: 'timeout', detail: 'token_wait', telling: false }
const PASSWORD_UNREADABLE: NoToken = { kind: 'none', reason: 'credentials', detail: 'password_unreadable', telling: false }

/**
 * Without a token, needing one asks for one, unless the gate is closed. With one, it serves until the status API refuses it; when its hint
 * of an end draws near it is renewed in the background, and whatever becomes of that the token in hand serves on. Refused is what either
 * side says of the credentials; only a status answer to a token obtained since takes that back.
 */
export function createTokenClient(options: TokenClientOptions): TokenClient {
  const { clock, log, username } = options
  const earlier = options.earlier?.refusal ?? null
  let pausedUntilMs = clock.monotonic() + (options.earlier?.pausedForMs ?? 0)
  const gate = openGate(options, pausedUntilMs)
  let held: Held | null = null
  let flight: Promise<TokenResult> | null = null
  let credentials: CarrierState['credentials'] = earlier === null ? 'unknown' : 'refused'
  let refusedSinceObtained = false
  let mark = earlier?.mark ?? null
  let trouble: NoToken = { kind: 'none', reason: 'rate_limited', detail: 'token endpoint: earlier', telling: false }
  let presented: string | null = null
  /** The trouble of the last try, told once while it lasts. */
  let told: string | null = null

  /** Why no token may be asked for now; `null`: one may. A new password is worth a try at once. */
  const closed = (): NoToken | null => {
    const nowMs = clock.monotonic()
    const by = gate.closedBy(nowMs)
    if (by === null) return null
    const retryAfterMs = clampRetryAfterMs(gate.waitMs(nowMs))
    if (by === 'trouble') return { ...trouble, retryAfterMs, telling: false }
    const password = readPassword(options.password)
    if (presented === null && password !== null && mark !== null && isMarked(password, mark)) presented = password
    if (password === null || password === presented)
      return { kind: 'none', reason: 'credentials', retryAfterMs, detail: 'waiting', telling: false }
    gate.reset()
    return null
  }
  const refused = (detail: string): NoToken => {
    const nowMs = clock.monotonic()
    gate.refused(nowMs)
    credentials = 'refused'
    refusedSinceObtained = true
    mark = presented === null ? mark : markOf(presented)
    const retryAfterMs = clampRetryAfterMs(gate.waitMs(nowMs))
    log.error({ username, detail, retryAfterMs }, 'the carrier refuses the credentials')
    return { kind: 'none', reason: 'credentials', retryAfterMs, detail, telling: true }
  }
  const tellTrouble = ({ reason, detail }: NoToken): void => {
    const fields = { reason, detail, url: addressOf(options.authUrl) }
    if (told === detail) log.debug(fields, 'no token from the carrier')
    else if (reason === 'token_bad_response') log.warn(fields, 'no token from the carrier: look whether upstream.authUrl is right')
    else log.warn(fields, 'no token from the carrier')
    told = detail
  }
  const troubled = (failure: NoToken): NoToken => {
    const nowMs = clock.monotonic()
    gate.troubled(nowMs, failure.retryAfterMs ?? null)
    pausedUntilMs = nowMs + (failure.retryAfterMs ?? 0)
    trouble = failure
    tellTrouble(failure)
    return { ...failure, retryAfterMs: clampRetryAfterMs(gate.waitMs(nowMs)) }
  }
  const present = async (): Promise<TokenResult> => {
    const password = readPassword(options.password)
    if (password === null) return troubled(PASSWORD_UNREADABLE)
    presented = password
    const result = await requestToken(options, password)
    if (result.kind === 'trouble' && !result.failure.telling) return result.failure
    if (result.kind !== 'token') {
      if (result.kind === 'refused') gate.tried()
      const none = result.kind === 'refused' ? refused(result.detail) : troubled(result.failure)
      // Before anybody hears of it: a crash right after must not forget the try, nor the wait that was asked for.
      if (result.kind === 'refused' || result.failure.retryAfterMs !== undefined) await options.keep()
      return none
    }
    gate.tried()
    refusedSinceObtained = false
    told = null
    held = { token: result.token, renewAtMs: renewalTime(result.token, clock) }
    return result
  }
  const request = (): Promise<TokenResult> => {
    const reason = flight === null ? closed() : null
    if (reason !== null) return Promise.resolve(reason)
    // Of all who wait for one request, one hears what it tells.
    if (flight !== null) return flight.then((result) => (result.kind === 'token' ? result : { ...result, telling: false }))
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
      if (held?.token !== rejected) return closed() ?? { kind: 'none', reason: 'credentials', detail: 'refused', telling: false }
      held = null
      const none = refused('status API: 401')
      void options.keep()
      return none
    },
    prove(token) {
      if (held?.token !== token || refusedSinceObtained) return
      const wasRefused = credentials === 'refused'
      if (credentials !== 'accepted') log.info({ username }, 'the carrier accepts the credentials')
      credentials = 'accepted'
      gate.reset()
      if (wasRefused) void options.keep()
    },
    credentials: () => credentials,
    pausedUntilMs: () => pausedUntilMs,
    refusal() {
      if (credentials !== 'refused') return null
      return { tries: gate.tries(), untilMs: Math.round(clock.now() + gate.waitMs(clock.monotonic())), mark }
    },
  }
}

/** Refused credentials of an earlier run wait as they would have there; so does what the endpoint asked for. */
function openGate({ earlier, clock }: TokenClientOptions, pausedUntilMs: number): CredentialGate {
  const nowMs = clock.monotonic()
  const refusal = earlier?.refusal ?? null
  if (earlier !== null && refusal !== null) {
    const waitMs = Math.min(CREDENTIAL_WAIT_MAX_MS, leftOfWait(refusal.untilMs, earlier.atMs, clock.now()))
    return createCredentialGate({ tries: refusal.tries, opensAtMs: Math.max(nowMs + waitMs, pausedUntilMs) })
  }
  const gate = createCredentialGate()
  if (pausedUntilMs > nowMs) gate.troubled(nowMs, pausedUntilMs - nowMs)
  return gate
}

/** Wall time decides how long the token has, monotonic time when that is over: a corrected clock renews nothing early or late. */
function renewalTime(token: string, clock: Clock): number | null {
  const expiresAtMs = readExpiryHint(token)
  const leftMs = expiresAtMs === null ? 0 : expiresAtMs - clock.now()
  return leftMs < HINT_MIN_MS ? null : clock.monotonic() + leftMs - Math.min(RENEW_AHEAD_MAX_MS, leftMs * 0.2)
}

/** Without what may be secret in it. */
function addressOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

/** `null` when it cannot be read, for example while its file is being replaced. */
function readPassword(password: () => string): string | null {
  try {
    return password()
  } catch {
    return null
  }
}
