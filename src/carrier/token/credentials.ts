import type { CarrierState, UnavailableReason } from '../../domain/polling/carrier-answer.ts'
import type { CredentialRefusal, RefusedBy } from '../../domain/polling/carrier-memory.ts'
import type { TokenState } from '../../domain/polling/carrier-token.ts'
import { clampRetryAfterMs } from '../../domain/retry-after.ts'
import type { Clock, Log } from '../../flow/ports.ts'
import { remainingWaitMs } from '../budget/budget-saver.ts'
import { CREDENTIAL_WAIT_MAX_MS, type CredentialGate, createCredentialGate } from './credential-gate.ts'
import { type CredentialStanding, createCredentialStanding, type LastRefusal } from './credential-standing.ts'
import { fingerprintPassword, hasFingerprint } from './password-fingerprint.ts'
import type { NoToken } from './token-request.ts'

/** The state of the credentials, which decides whether a token may be requested now (DOMAIN 6.4). */
export interface Credentials {
  /** Why no token may be requested now; null: one may. A new password may be tried at once. */
  closed(): NoToken | null
  /** A password is being sent to the token endpoint. One that was not refused ends the refusal of another. */
  present(password: string): void
  /** The token endpoint refused the credentials. */
  notTaken(detail: string): NoToken
  /** The status API refused a token that the credentials had brought. */
  tokenRefused(detail: string): NoToken
  /** No token could be obtained, for a reason that says nothing about the credentials. */
  troubled(failure: NoToken): NoToken
  /** The credentials brought a token. */
  obtained(): void
  /** The credentials brought another replica a token, with which it left this state. */
  brought(state: TokenState): void
  /** The status API accepted that token. Returns whether a refusal counted until now. */
  proved(): boolean
  /** What operators are told. */
  state(): Pick<CarrierState, 'credentials' | 'refusal'>
  /** Whether a refusal counts: attempts are rationed until the status API accepts a token, whatever operators are told meanwhile. */
  isRationed(): boolean
  /** The refusal to save for the next run; null: none counts. */
  refusal(): CredentialRefusal | null
  /** Until when the token endpoint asked for a pause, monotonic milliseconds, to save for the next run. */
  pausedUntilMs(): number
  /** Goes on from what replicas know together. */
  follow(state: TokenState): void
  /** What other replicas are to know. */
  known(): TokenState
}

export interface CredentialOptions {
  readonly username: string
  readonly authUrl: string
  readonly clock: Clock
  readonly password: () => string
  readonly log: Log
  readonly earlier: EarlierTokens | null
}

/** What an earlier run saved. */
export interface EarlierTokens {
  /** When it was saved, epoch milliseconds. */
  readonly atMs: number
  readonly refusal: CredentialRefusal | null
  readonly pausedForMs: number
}

// oxlint-disable-next-line max-lines-per-function -- its verbs share one state of the credentials
export function openCredentials(options: CredentialOptions): Credentials {
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
  const follow = (shared: TokenState): void => {
    const isRefused = shared.refusedForMs !== null
    gate = gateOf(shared, clock.monotonic())
    // Another password than the one presented here may have been refused.
    if (isRefused && shared.mark?.digest !== standing.last().mark?.digest) presented = null
    standing.follow(isRefused, shared.mark)
    if (shared.pausedForMs > 0) trouble.follow(shared.trouble)
  }

  return {
    closed() {
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
      // Remembered, because a fingerprint takes milliseconds.
      presented = password ?? presented
      return { kind: 'none', reason: 'credentials', retryAfterMs, detail: 'waiting', conclusive: false }
    },
    present(password) {
      if (standing.isRationed() && !isRefusedOne(password)) begin()
      presented = password
    },
    notTaken(detail) {
      gate.tried()
      return refused(detail, 'token_endpoint')
    },
    tokenRefused: (detail) => refused(detail, 'status_api'),
    troubled(failure) {
      const nowMs = clock.monotonic()
      gate.troubled(nowMs, failure.retryAfterMs ?? null)
      pausedUntilMs = nowMs + (failure.retryAfterMs ?? 0)
      trouble.report(failure)
      return { ...failure, retryAfterMs: clampRetryAfterMs(gate.waitMs(nowMs)) }
    },
    obtained() {
      gate.tried()
      standing.obtained()
      trouble.end()
    },
    brought(shared) {
      if (standing.isRationed() && shared.refusedForMs === null) follow(shared)
      standing.brought()
    },
    proved() {
      const [wasRationed, before] = [standing.isRationed(), standing.state()]
      if (!standing.proved()) return false
      if (before !== 'accepted') log.info({ username }, 'the carrier accepts the credentials')
      gate.reset()
      return wasRationed
    },
    state: () => toldOf(standing, gate.waitMs(clock.monotonic())),
    isRationed: standing.isRationed,
    pausedUntilMs: () => pausedUntilMs,
    refusal: () => (standing.isRationed() ? refusalOf(gate, standing.last(), clock) : null),
    follow,
    known: () =>
      stateOf(gate, { refused: standing.isRationed() ? standing.last() : null, trouble: trouble.last().reason }, clock.monotonic()),
  }
}

function isMarked(password: string, { mark }: LastRefusal): boolean {
  return mark !== null && hasFingerprint(password, mark)
}

function toldOf(standing: CredentialStanding, retryMs: number): ReturnType<Credentials['state']> {
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

/** Why no token could be had, logged once while it lasts. Until there is an attempt, it is the wait that an earlier run was asked for. */
function createTrouble({ log, authUrl }: Pick<CredentialOptions, 'log' | 'authUrl'>) {
  let last: NoToken = { kind: 'none', reason: 'rate_limited', detail: 'token endpoint: Retry-After of an earlier run', conclusive: false }
  let isOwn = false
  let logged: string | null = null
  return {
    last: () => last,
    /** Another replica made the attempt, and has logged it. Null: it does not say why it failed. */
    follow(reason: UnavailableReason | null): void {
      if (isOwn && reason === last.reason) return
      isOwn = false
      last = { kind: 'none', reason: reason ?? 'resting', detail: 'token request of another replica', conclusive: false }
    },
    report(failure: NoToken): void {
      last = failure
      isOwn = true
      const { reason, detail } = failure
      const fields = { reason, detail, url: addressOf(authUrl) }
      if (logged === detail) log.debug(fields, 'no token from the carrier')
      else if (reason === 'token_bad_response') log.warn(fields, 'no token from the carrier: check upstream.authUrl')
      else log.warn(fields, 'no token from the carrier')
      logged = detail
    },
    end(): void {
      logged = null
    },
  }
}

/** Continues the waits of an earlier run: after refused credentials, and those the endpoint asked for. */
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

/** The URL without parts that may be secret. */
function addressOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

/** Reads the password; `null`: it cannot be read, for example while its file is being replaced. */
export function readPassword(password: () => string): string | null {
  try {
    return password()
  } catch {
    return null
  }
}
