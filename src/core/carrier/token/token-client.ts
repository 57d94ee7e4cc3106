import { createHash, randomBytes } from 'node:crypto'
import type { TokenRecord, TokenState } from '../../domain/polling/carrier-answer.ts'
import type { Clock, Vault } from '../../flow/ports.ts'
import { orWhenAborted, type StartTimer } from '../../outbound/deadline.ts'
import type { SharedToken } from '../../store/polling/shared-carrier.ts'
import { type CredentialOptions, type Credentials, openCredentials, readPassword } from './credentials.ts'
import { type NoToken, readExpiryHint, requestToken, type TokenRequestOptions } from './token-request.ts'

/** If a new token expires sooner than this, its expiry time is ignored. Otherwise the token would be renewed all the time. */
const HINT_MIN_MS = 10_000
const RENEW_AHEAD_MAX_MS = 60_000
const DOUBT_EVERY_MS = 15 * 60_000

export type TokenResult = { readonly kind: 'token'; readonly token: string } | NoToken

/** Provides the carrier's bearer token. One request serves all callers that need a token (DOMAIN 6.5). */
export type TokenClient = ReturnType<typeof createTokenClient>

export interface TokenClientOptions extends TokenRequestOptions, CredentialOptions {
  /** Saves the state for the next run. Called when a refusal begins or ends, and when the token endpoint asks for a pause. */
  readonly keep: () => Promise<unknown>
  /** The token that replicas share; null: this process requests tokens alone. */
  readonly share: TokenShare | null
  readonly startTimer: StartTimer
}

interface Held {
  readonly token: string
  /** Monotonic milliseconds. */
  readonly sinceMs: number
  /** When to renew the token, monotonic milliseconds; `null`: only when it is refused. */
  readonly renewAtMs: number | null
  /** The version under which replicas share the token; null: only this process has it. */
  readonly version: number | null
  /** Whether the status API has accepted the token and this was reported to the other replicas. */
  readonly isProved: boolean
}

/**
 * Creates the token client. Shortly before a token expires, it is renewed in the background; if that fails, it stays in use. The credentials
 * count as refused if the token endpoint refuses the password, or if the status API refuses even a new token. They count as accepted again as
 * soon as the status API accepts a newer token.
 */
export function createTokenClient(options: TokenClientOptions) {
  const { clock, log, share } = options
  const credentials = openCredentials(options)
  let held: Held | null = null
  let flight: Promise<TokenResult> | null = null

  let rejected: string | null = null
  const mayDoubt = createDoubt(clock, credentials)
  const hold = (token: string, version: number | null): void => {
    held = { token, sinceMs: clock.monotonic(), renewAtMs: renewalTime(token, clock), version, isProved: false }
  }
  const obtain = async (): Promise<TokenResult> => {
    const { result, mustKeep } = await presentPassword(options, credentials)
    // Save before the call returns, so that a crash cannot lose a refusal, or a wait that the endpoint asked for.
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
    // If replicas share the credentials, the state here may be out of date. Then `obtainTogether` checks the shared state instead.
    const reason = flight === null && share === null ? credentials.closed() : null
    if (reason !== null) return Promise.resolve(reason)
    // Many callers may wait for one request. Only the first caller gets a conclusive failure, so that the failure counts once.
    if (flight !== null) return flight.then((result) => (result.kind === 'token' ? result : { ...result, conclusive: false }))
    flight = (share === null ? obtain() : obtainShared(share)).finally(() => {
      flight = null
    })
    return flight
  }
  return {
    /** Returns the current token. If there is none, requests one. */
    async get(signal: AbortSignal): Promise<TokenResult> {
      if (held === null) return orWhenAborted(request(), signal, WAITED_TOO_LONG)
      const { token, renewAtMs } = held
      if (renewAtMs !== null && clock.monotonic() >= renewAtMs) request().catch(() => log.error({}, 'renewing the token failed'))
      return { kind: 'token', token }
    },
    /** Returns the current token without a request; null: there is none. */
    current: (): string | null => held?.token ?? null,
    /** Replaces a token that the status API has refused. If the current token is already another one, returns it. Otherwise requests a new token. */
    async renew(refused: string, signal: AbortSignal): Promise<TokenResult> {
      rejected = refused
      if (held?.token === refused) held = null
      return held === null ? orWhenAborted(request(), signal, WAITED_TOO_LONG) : { kind: 'token', token: held.token }
    },
    /**
     * Notes that the status API has answered 403, which may mean that this token has expired. Once in a quarter of an hour, requests a new token if
     * a token has worked, or if this one is so old. Returns the token to ask with once more; null: there is no other, and this one stays in use.
     */
    async doubt(token: string, signal: AbortSignal): Promise<string | null> {
      if (held !== null && held.token !== token) return held.token
      if (flight === null) {
        if (held === null || !mayDoubt(held)) return null
        log.info({}, 'the carrier answers 403 to a token that has worked: the relay requests a new one')
      }
      const result = await orWhenAborted(request(), signal, WAITED_TOO_LONG)
      return result.kind === 'token' && result.token !== token ? result.token : null
    },
    /** Notes that the status API has refused this token, even though it is new. The credentials count as refused from now on. */
    refuse(refused: string): NoToken {
      // If the status API refuses many calls with the same token, only the first refusal counts.
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
    /** Notes that the status API has accepted this token. */
    prove(token: string) {
      if (held?.token !== token) return
      if (credentials.proved()) void options.keep()
      const { version } = held
      if (version === null || held.isProved || credentials.isRationed()) return
      held = { ...held, isProved: true }
      share?.accepted(version)
    },
    /** Gets a token for the present password, even if there is a token already. */
    logIn: (signal: AbortSignal): Promise<TokenResult> => orWhenAborted(request(), signal, WAITED_TOO_LONG),
    state: credentials.state,
    /** Whether attempts are limited, because the carrier refused the credentials and has accepted no later token. */
    isRationed: credentials.isRationed,
    /** The end of a pause that the token endpoint asked for, monotonic milliseconds. The caller saves it for the next run. */
    pausedUntilMs: credentials.pausedUntilMs,
    /** The refusal to save for the next run; null: attempts are not limited. */
    refusal: credentials.refusal,
  }
}

/** Returns a function that says whether a 403 may cost a token request now. A true answer counts as one. */
function createDoubt(clock: Clock, credentials: Credentials): (held: Held) => boolean {
  let doubtedAtMs = Number.NEGATIVE_INFINITY
  return ({ sinceMs }) => {
    const nowMs = clock.monotonic()
    const hasWorked = credentials.state().credentials === 'accepted' || nowMs - sinceMs >= DOUBT_EVERY_MS
    if (!hasWorked || credentials.isRationed() || nowMs - doubtedAtMs < DOUBT_EVERY_MS) return false
    doubtedAtMs = nowMs
    return true
  }
}

/** See `Held.renewAtMs`. */
function renewalTime(token: string, clock: Clock): number | null {
  const expiresAtMs = readExpiryHint(token)
  const leftMs = expiresAtMs === null ? 0 : expiresAtMs - clock.now()
  return leftMs < HINT_MIN_MS ? null : clock.monotonic() + leftMs - Math.min(RENEW_AHEAD_MAX_MS, leftMs * 0.2)
}

/** While one replica requests a token, the others look for it in the store: every `LOOK_MS`, at most `LOOKS_MAX` times. */
const LOOK_MS = 150
const LOOKS_MAX = 200

const WAITED_TOO_LONG: NoToken = { kind: 'none', reason: 'timeout', detail: 'token_wait', conclusive: false }
const PASSWORD_UNREADABLE: NoToken = { kind: 'none', reason: 'credentials', detail: 'password_unreadable', conclusive: false }
const STORE_FAILED: NoToken = { kind: 'none', reason: 'budget', detail: 'token_store', conclusive: false, retryAfterMs: 5000 }

type ObtainOptions = TokenRequestOptions & Pick<CredentialOptions, 'password'>

interface Presented {
  readonly result: { readonly kind: 'token'; readonly token: string; readonly password: string } | NoToken
  /** True: the endpoint refused the password or asked for a wait, so the state must be saved for the next run. */
  readonly mustKeep: boolean
}

/** Requests a token, and updates `credentials` with the outcome. */
async function presentPassword(options: ObtainOptions, credentials: Credentials): Promise<Presented> {
  const password = readPassword(options.password)
  if (password === null) return { result: credentials.troubled(PASSWORD_UNREADABLE), mustKeep: false }
  credentials.present(password)
  const outcome = await requestToken(options, password)
  if (outcome.kind === 'refused') return { result: credentials.notTaken(outcome.detail), mustKeep: true }
  if (outcome.kind === 'trouble') {
    const { failure } = outcome
    if (!failure.conclusive) return { result: failure, mustKeep: false }
    return { result: credentials.troubled(failure), mustKeep: failure.retryAfterMs !== undefined }
  }
  credentials.obtained()
  return { result: { kind: 'token', token: outcome.token, password }, mustKeep: false }
}

interface TogetherOptions extends ObtainOptions {
  readonly share: TokenShare
  readonly credentials: Credentials
  readonly startTimer: StartTimer
}

/** `version`: the shared token's version; null: another replica took over the claim meanwhile, so only this replica has the token. */
type SharedTokenResult = { readonly kind: 'token'; readonly token: string; readonly version: number | null } | NoToken

/**
 * Gets the token that all replicas share. If there is none, or it equals `stale`, one replica requests a new token and the others wait for it. If the
 * endpoint refuses the credentials or asks for a wait, the other replicas wait too.
 */
async function obtainTogether(options: TogetherOptions, stale: string | null): Promise<SharedTokenResult> {
  const { share, credentials, startTimer } = options
  // This deadline is never started, so its signal is aborted only when the relay stops.
  const stopping = options.openDeadline()
  try {
    for (let look = 0; look < LOOKS_MAX && !stopping.signal.aborted; look++) {
      const { token, version, ...known } = await share.read()
      if (token !== null && token !== stale) {
        credentials.brought(known)
        return { kind: 'token', token, version }
      }
      credentials.adopt(known)
      const closed = credentials.closed()
      if (closed !== null) return closed
      if (await share.claim(version)) return await requestClaimed(options, version)
      await new Promise<void>((resolve) => startTimer(LOOK_MS, resolve))
    }
    return WAITED_TOO_LONG
  } catch {
    return STORE_FAILED
  } finally {
    stopping.end()
  }
}

async function requestClaimed(options: TogetherOptions, version: number): Promise<SharedTokenResult> {
  const { share, credentials } = options
  // The replica that had the claim before may have changed the shared state since we read it, so read it again.
  credentials.adopt(await share.read())
  const closed = credentials.closed()
  if (closed !== null) {
    await share.giveUp(credentials.known())
    return closed
  }
  const { result } = await whileRenewing(
    () => presentPassword(options, credentials),
    () => share.claim(version),
    options.startTimer,
  )
  if (result.kind === 'token') {
    const { token, password } = result
    return { kind: 'token', token, version: await share.replace(token, password, credentials.known()) }
  }
  if (credentials.isRationed()) await share.drop(credentials.known())
  else await share.giveUp(credentials.known())
  return result
}

/** Renews a claim until the work is done. A single failed renewal does no harm, because the next renewal comes before the claim lapses. */
async function whileRenewing<T>(work: () => Promise<T>, renew: () => Promise<unknown>, startTimer: StartTimer): Promise<T> {
  let isOver = false
  let cancel = (): void => undefined
  const renewLater = (): void => {
    if (isOver) return
    cancel = startTimer(
      CLAIM_MS / 3,
      () =>
        void renew()
          .catch(() => undefined)
          .finally(renewLater),
    )
  }
  renewLater()
  try {
    return await work()
  } finally {
    isOver = true
    cancel()
  }
}

/** A replica claims the right to request a token. The claim lapses after this time, so that another replica can go on if the first is killed. */
const CLAIM_MS = 5000
/** The vault needs this context to decrypt a token. So another secret that is copied into the token's column is not taken for a token. */
const CONTEXT = 'carrier-token'

/** The token that replicas share through the store, encrypted with the at-rest keys. */
type TokenShare = ReturnType<typeof createTokenShare>

export function createTokenShare(
  { token: row, vault }: { readonly token: SharedToken; readonly vault: Pick<Vault, 'seal' | 'open'> },
  login: { readonly authUrl: string; readonly username: string; readonly password: () => string },
) {
  const holder = randomBytes(8).toString('hex')
  let saved: Promise<unknown> = Promise.resolve()
  // The fingerprint is encrypted together with the token. Otherwise somebody who reads the store could try passwords against the fingerprint.
  const fingerprintOf = (password: string): string =>
    createHash('sha256')
      .update(JSON.stringify([login.authUrl, login.username, password]))
      .digest('base64url')

  /** Ignores failed writes: the next call with the token shows again whether the status API accepts it. */
  function saveSoon(write: () => Promise<void>): void {
    saved = saved.then(write).catch(() => undefined)
  }

  async function open(sealed: string | null): Promise<string | null> {
    const text = sealed === null ? null : await vault.open(sealed, CONTEXT)
    const [of, ...token] = text?.split(' ') ?? []
    const password = readPassword(login.password)
    return token.length > 0 && password !== null && of === fingerprintOf(password) ? token.join(' ') : null
  }

  return {
    /** Reads the token and its state. `token` null: there is no token, or it was obtained with other credentials than ours. */
    async read(): Promise<TokenRecord & { readonly token: string | null }> {
      await saved
      const record = await row.read()
      return { ...record, token: await open(record.sealed) }
    },
    /** Claims the right to replace this version, or renews the claim. False: another replica has the claim, or has replaced the version. */
    claim: (version: number) => row.claim({ holder, version, leaseMs: CLAIM_MS }),
    /** Resolves with the version of the new token; null: this replica no longer has the claim. */
    async replace(token: string, password: string, state: TokenState): Promise<number | null> {
      return await row.replace({ ...state, holder, sealed: await vault.seal(`${fingerprintOf(password)} ${token}`, CONTEXT) })
    },
    /** Removes the token when the credentials count as refused. */
    async drop(state: TokenState) {
      await row.replace({ ...state, holder, sealed: null })
    },
    giveUp: (state: TokenState) => row.giveUp({ ...state, holder }),
    /** Notes that the status API has accepted the token. This and `refused` save in the background, and the next `read` waits for that. */
    accepted: (version: number) => saveSoon(() => row.accepted(version)),
    refused: (version: number, state: TokenState) => saveSoon(() => row.refused({ ...state, version })),
  }
}
