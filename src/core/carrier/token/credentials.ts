import { randomBytes, scryptSync } from 'node:crypto'
import { clampRetryAfterMs } from '../../domain/instant.ts'
import type { CredentialRefusal, RefusedBy } from '../../domain/polling/call-budget.ts'
import type { CarrierState, TokenState, UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import type { Clock } from '../../flow/ports.ts'
import type { Relay } from '../../flow/relay-part.ts'
import { remainingWaitMs } from '../budget/own-budget.ts'
import type { NoToken, TokenRequestOptions } from './token-request.ts'

/** Knows whether the carrier has refused the credentials, and decides whether a token may be requested now (DOMAIN 6.4). */
export type Credentials = ReturnType<typeof openCredentials>

export interface CredentialOptions extends Pick<TokenRequestOptions, 'authUrl' | 'username' | 'clock'>, Pick<Relay, 'log'> {
  /** Read at every token request, so that a new password needs no restart. */
  readonly password: () => string
  readonly earlier: EarlierTokens | null
}

export interface EarlierTokens {
  /** When an earlier run saved this, epoch milliseconds. */
  readonly atMs: number
  readonly refusal: CredentialRefusal | null
  readonly pausedForMs: number
}

// oxlint-disable-next-line max-lines-per-function -- its methods share one state of the credentials
export function openCredentials(options: CredentialOptions) {
  const { clock, log, username } = options
  const standing = createCredentialStanding(options.earlier?.refusal ?? null)
  let pausedUntilMs = clock.monotonic() + (options.earlier?.pausedForMs ?? 0)
  let gate = openGate(options, pausedUntilMs)
  const trouble = createTrouble(options)
  let presented: string | null = null

  const isRefusedOne = (password: string): boolean => password === presented || isMarked(password, standing.last())
  const begin = (): void => {
    gate.reset()
    standing.begin()
  }
  const refused = (detail: string, by: RefusedBy): NoToken => {
    const nowMs = clock.monotonic()
    gate.refused(nowMs)
    standing.refused({ atMs: clock.now(), by, mark: presented === null ? standing.last().mark : fingerprintPassword(presented) })
    const retryAfterMs = clampRetryAfterMs(gate.waitMs(nowMs))
    log.error({ username, detail, retryAfterMs }, 'the carrier refuses the credentials')
    return { kind: 'none', reason: 'credentials', retryAfterMs, detail, conclusive: true }
  }
  /** Takes over the state that the replicas share. */
  const adopt = (shared: TokenState): void => {
    const isRefused = shared.refusedForMs !== null
    gate = gateOf(shared, clock.monotonic())
    // The refused password may be that of another replica. Then `refused` must not save the fingerprint of our password.
    if (isRefused && shared.mark?.digest !== standing.last().mark?.digest) presented = null
    standing.adopt(isRefused, shared.mark)
    if (shared.pausedForMs > 0) trouble.adopt(shared.trouble)
  }

  return {
    /** Returns why no token may be requested now; null: a token may be requested. After a refusal, a new password may be tried at once. */
    closed(): NoToken | null {
      const nowMs = clock.monotonic()
      const by = gate.closedBy(nowMs)
      if (by === null) return null
      const retryAfterMs = clampRetryAfterMs(gate.waitMs(nowMs))
      if (by === 'trouble') return { ...trouble.last(), retryAfterMs, conclusive: false }
      const password = readPassword(options.password)
      if (password !== null && !isRefusedOne(password)) {
        begin()
        return null
      }
      // Keep the password, because comparing it by its fingerprint takes milliseconds.
      presented = password ?? presented
      return { kind: 'none', reason: 'credentials', retryAfterMs, detail: 'waiting', conclusive: false }
    },
    /** Notes that this password is being sent to the token endpoint. If it differs from the refused password, the refusal no longer counts. */
    present(password: string) {
      if (standing.isRationed() && !isRefusedOne(password)) begin()
      presented = password
    },
    /** Notes that the token endpoint has refused the credentials. */
    notTaken(detail: string): NoToken {
      gate.tried()
      return refused(detail, 'token_endpoint')
    },
    /** Notes that the status API has refused a token that came from the credentials. */
    tokenRefused: (detail: string): NoToken => refused(detail, 'status_api'),
    /** Notes that no token could be obtained, although the credentials were not refused. */
    troubled(failure: NoToken): NoToken {
      const nowMs = clock.monotonic()
      gate.troubled(nowMs, failure.retryAfterMs ?? null)
      pausedUntilMs = nowMs + (failure.retryAfterMs ?? 0)
      trouble.report(failure)
      return { ...trouble.last(), retryAfterMs: clampRetryAfterMs(gate.waitMs(nowMs)) }
    },
    /** Notes that the token endpoint has given a token for the credentials. */
    obtained() {
      gate.tried()
      standing.obtained()
      trouble.end()
    },
    /** Notes that another replica has obtained a token with the credentials, and takes over that replica's state. */
    brought(shared: TokenState) {
      if (standing.isRationed() && shared.refusedForMs === null) adopt(shared)
      standing.brought()
    },
    /** Notes that the status API has accepted the token. Returns whether attempts were limited until now. */
    proved() {
      const [wasRationed, before] = [standing.isRationed(), standing.state()]
      if (!standing.proved()) return false
      if (before !== 'accepted') log.info({ username }, 'the carrier accepts the credentials')
      gate.reset()
      return wasRationed
    },
    state: (): Pick<CarrierState, 'credentials' | 'refusal'> => presentStanding(standing, gate.waitMs(clock.monotonic())),
    /** Whether a refusal limits attempts. The limit ends when the status API accepts a token or the password changes. */
    isRationed: standing.isRationed,
    /** The end of a pause that the token endpoint asked for, monotonic milliseconds. */
    pausedUntilMs: () => pausedUntilMs,
    /** The refusal to save for the next run; null: attempts are not limited. */
    refusal: (): CredentialRefusal | null => (standing.isRationed() ? refusalOf(gate, standing.last(), clock) : null),
    adopt,
    /** The state to share with the other replicas. */
    known: (): TokenState =>
      stateOf(gate, { refused: standing.isRationed() ? standing.last() : null, trouble: trouble.last().reason }, clock.monotonic()),
  }
}

function isMarked(password: string, { mark }: LastRefusal): boolean {
  return mark !== null && hasFingerprint(password, mark)
}

function presentStanding(standing: CredentialStanding, retryMs: number): ReturnType<Credentials['state']> {
  const { atMs, by } = standing.last()
  const credentials = standing.state()
  return { credentials, refusal: credentials === 'refused' ? { atMs, by, retryMs } : null }
}

function refusalOf(gate: CredentialGate, { atMs, by, mark }: LastRefusal, clock: Clock): CredentialRefusal {
  return { tries: gate.tries(), untilMs: Math.round(clock.now() + gate.waitMs(clock.monotonic())), atMs, by, mark }
}

function gateOf({ tries, troubles, refusedForMs, pausedForMs }: TokenState, nowMs: number): CredentialGate {
  const closing = refusedForMs === null ? 'trouble' : 'credentials'
  return createCredentialGate({ tries, troubles, closing, opensAtMs: nowMs + Math.max(refusedForMs ?? 0, pausedForMs) })
}

function stateOf(
  gate: CredentialGate,
  why: { readonly refused: Pick<TokenState, 'mark'> | null; readonly trouble: UnavailableReason },
  nowMs: number,
): TokenState {
  const waitMs = gate.waitMs(nowMs)
  const { refused } = why
  const trouble = refused === null && waitMs > 0 ? why.trouble : null
  const waits = refused === null ? { refusedForMs: null, pausedForMs: waitMs } : { refusedForMs: waitMs, pausedForMs: 0 }
  return { tries: gate.tries(), troubles: gate.troubles(), trouble, mark: refused?.mark ?? null, ...waits }
}

/**
 * Keeps the last failure to get a token. Before the first failure of this run, `last` is a `Retry-After` from an earlier run. Logs a warning
 * if a failure suggests a wrong `authUrl`, once for each series of failures with the same detail.
 */
function createTrouble({ log, authUrl }: Pick<CredentialOptions, 'log' | 'authUrl'>) {
  let last: NoToken = { kind: 'none', reason: 'rate_limited', detail: 'token endpoint: Retry-After of an earlier run', conclusive: false }
  let isOwn = false
  let logged: string | null = null
  return {
    last: () => last,
    /** Takes over a failure that another replica had and logged. Null: that replica gave no reason. */
    adopt(reason: UnavailableReason | null): void {
      if (isOwn && reason === last.reason) return
      isOwn = false
      last = { kind: 'none', reason: reason ?? 'resting', detail: 'token request of another replica', conclusive: false }
    },
    report(failure: NoToken): void {
      const { reason, detail } = failure
      const url = addressOf(authUrl)
      last = { ...failure, url }
      isOwn = true
      const pointsElsewhere = reason === 'token_bad_response' || reason === 'redirect'
      if (pointsElsewhere && logged !== detail) log.warn({ reason, detail, url }, 'no token from the carrier: check upstream.authUrl')
      else log.debug({ reason, detail, url }, 'no token from the carrier')
      logged = detail
    },
    end(): void {
      logged = null
    },
  }
}

/** Creates the gate. The gate stays closed until the waits that an earlier run began are over. */
function openGate({ earlier, clock }: CredentialOptions, pausedUntilMs: number): CredentialGate {
  const nowMs = clock.monotonic()
  const refusal = earlier?.refusal ?? null
  if (earlier !== null && refusal !== null) {
    const waitMs = Math.min(CREDENTIAL_WAIT_MAX_MS, remainingWaitMs(refusal.untilMs, earlier.atMs, clock.now()))
    return createCredentialGate({ tries: refusal.tries, opensAtMs: Math.max(nowMs + waitMs, pausedUntilMs) })
  }
  const gate = createCredentialGate()
  if (pausedUntilMs > nowMs) gate.troubled(nowMs, pausedUntilMs - nowMs)
  return gate
}

/** Returns the URL without user info and query, which may be secret. */
function addressOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

/** Null: the password cannot be read, for example while its file is being replaced. */
export function readPassword(password: () => string): string | null {
  try {
    return password()
  } catch {
    return null
  }
}

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** The waits after the first, second, third and fourth refused attempt in a row. After later attempts the wait is `REFUSED_WAIT_MAX_MS`. */
const REFUSED_WAITS_MS: readonly number[] = [SECOND, MINUTE, 15 * MINUTE, 30 * MINUTE]
const REFUSED_WAIT_MAX_MS = 60 * MINUTE
const CREDENTIAL_WAIT_MAX_MS = REFUSED_WAIT_MAX_MS

/**
 * The first wait after trouble that is no refusal of the credentials. It doubles with each further trouble, up to `TROUBLE_WAIT_MAX_MS`. During the
 * wait no call requests a token.
 */
const TROUBLE_WAIT_MS = SECOND
const TROUBLE_WAIT_MAX_MS = MINUTE

type GateClosure = 'credentials' | 'trouble'

/** Decides when the credentials may be tried again. All times are monotonic milliseconds. */
type CredentialGate = ReturnType<typeof createCredentialGate>

/** The attempts of an earlier run, or of another replica. */
interface EarlierTries {
  readonly tries: number
  readonly troubles?: number
  /** Why the gate was closed; absent: refused credentials. */
  readonly closing?: GateClosure
  /** When the next attempt may be made, monotonic milliseconds. */
  readonly opensAtMs: number
}

/**
 * Creates the gate. The wait depends on the number of attempts since a token last worked. It does not matter whether the token endpoint refused the
 * password or the status API refused the token.
 */
function createCredentialGate(earlier: EarlierTries | null = null) {
  let tries = earlier?.tries ?? 0
  let troubles = earlier?.troubles ?? 0
  let opensAtMs = earlier?.opensAtMs ?? Number.NEGATIVE_INFINITY
  let closing: GateClosure = earlier === null ? 'trouble' : (earlier.closing ?? 'credentials')
  return {
    tries: () => tries,
    /** How many attempts in a row ended in trouble. */
    troubles: () => troubles,
    /** Returns how many milliseconds remain until the next attempt may be made; 0: it may be made now. */
    waitMs: (nowMs: number) => Math.max(0, opensAtMs - nowMs),
    closedBy: (nowMs: number): GateClosure | null => (opensAtMs > nowMs ? closing : null),
    /** Counts an attempt that the token endpoint has accepted or refused. An attempt that ended in trouble is not counted here. */
    tried() {
      tries += 1
      troubles = 0
    },
    /** Notes that the token endpoint or the status API has refused the last attempt. Closes the gate. */
    refused(nowMs: number) {
      closing = 'credentials'
      opensAtMs = nowMs + (REFUSED_WAITS_MS[Math.max(0, tries - 1)] ?? REFUSED_WAIT_MAX_MS)
    },
    /** Notes that the token endpoint was not reached or gave no usable answer. Closes the gate. `waitMs`: its `Retry-After`; null: none. */
    troubled(nowMs: number, waitMs: number | null) {
      closing = 'trouble'
      opensAtMs = nowMs + (waitMs ?? Math.min(TROUBLE_WAIT_MAX_MS, TROUBLE_WAIT_MS * 2 ** troubles))
      troubles = Math.min(troubles + 1, 10)
    },
    /** Forgets earlier attempts, because a token worked or the credentials have changed. */
    reset() {
      tries = 0
      troubles = 0
      opensAtMs = Number.NEGATIVE_INFINITY
    },
  }
}

type Fingerprint = NonNullable<CredentialRefusal['mark']>

/** Two bytes are enough to notice a changed password. They do not reveal the password, because many passwords have the same two bytes. */
const DIGEST_BYTES = 2
const SALT_BYTES = 16

function fingerprintPassword(password: string): Fingerprint {
  const salt = randomBytes(SALT_BYTES).toString('hex')
  return { salt, digest: digestOf(password, salt) }
}

function hasFingerprint(password: string, { salt, digest }: Fingerprint): boolean {
  return digestOf(password, salt) === digest
}

function digestOf(password: string, salt: string): string {
  return scryptSync(password, salt, DIGEST_BYTES, { N: 4096 }).toString('hex')
}

/** The last refusal. If another replica received it, `atMs` and `by` are null, because replicas do not share them. */
type LastRefusal = Required<Pick<CredentialRefusal, 'atMs' | 'by' | 'mark'>>

type CredentialStanding = ReturnType<typeof createCredentialStanding>

/** `earlier`: the refusal that an earlier run saved; null: the credentials were not refused. */
function createCredentialStanding(earlier: CredentialRefusal | null) {
  let state: CarrierState['credentials'] = earlier === null ? 'unknown' : 'refused'
  let isRationed = earlier !== null
  let refusedSinceObtained = false
  let last: LastRefusal = { atMs: earlier?.atMs ?? null, by: earlier?.by ?? null, mark: earlier?.mark ?? null }
  return {
    /** The state that operators see. */
    state: (): CarrierState['credentials'] => state,
    /** Whether a refusal limits how often the relay asks for a token, until the status API accepts a token or the password changes. */
    isRationed: () => isRationed,
    last: (): LastRefusal => last,
    /** Notes that another password is in use, so that earlier refusals no longer count. */
    begin() {
      state = 'unknown'
      isRationed = false
    },
    refused(refusal: LastRefusal) {
      state = 'refused'
      isRationed = true
      refusedSinceObtained = true
      last = refusal
    },
    /** Notes that the token endpoint has accepted the password. */
    obtained() {
      refusedSinceObtained = false
      // If the status API refused the last token, a new token does not show yet that the credentials work.
      if (state === 'unknown' || (state === 'refused' && last.by === 'token_endpoint')) state = 'obtained'
    },
    /** Notes that, after the last refusal, another replica has obtained the token that is now in use. */
    brought() {
      refusedSinceObtained = false
      if (state === 'unknown') state = 'obtained'
    },
    /** Notes that the status API has accepted a token. False: the token is older than the last refusal, so it proves nothing about the password. */
    proved() {
      if (refusedSinceObtained) return false
      state = 'accepted'
      isRationed = false
      return true
    },
    /** Takes over the state that the replicas share. */
    adopt(isRefused: boolean, mark: LastRefusal['mark']) {
      if (isRefused !== isRationed) state = isRefused ? 'refused' : 'unknown'
      isRationed = isRefused
      refusedSinceObtained = isRefused
      if (mark?.digest !== last.mark?.digest) last = { atMs: null, by: null, mark }
    },
  }
}
