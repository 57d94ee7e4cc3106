const SECOND = 1_000
const MINUTE = 60 * SECOND

/**
 * The wait after the first, second and further refused attempts in a row: three attempts within 15 minutes, then pauses of 15 minutes
 * growing to an hour.
 */
const REFUSED_WAITS_MS: readonly number[] = [SECOND, MINUTE, 15 * MINUTE, 30 * MINUTE]
const REFUSED_WAIT_MAX_MS = 60 * MINUTE
export const CREDENTIAL_WAIT_MAX_MS = REFUSED_WAIT_MAX_MS

/**
 * The wait after trouble that says nothing about the credentials. It is shorter, but long enough that calls that need a token do not each
 * request one.
 */
const TROUBLE_WAIT_MS = SECOND
const TROUBLE_WAIT_MAX_MS = MINUTE

/** Why the gate is closed: refused credentials, or other trouble. */
export type GateClosure = 'credentials' | 'trouble'

/** Decides when the credentials may be tried again. Pure bookkeeping in monotonic milliseconds. */
export interface CredentialGate {
  /** Milliseconds until the next attempt; 0: now. */
  waitMs(nowMs: number): number
  /** The credentials were accepted or refused. */
  tried(): void
  /** The last attempt was refused, by the token endpoint or by the status API: the gate closes. */
  refused(nowMs: number): void
  /** The token endpoint could not be reached or its answer was unusable; `waitMs`: its `Retry-After`, if any. */
  troubled(nowMs: number, waitMs: number | null): void
  /** A token worked, or the credentials changed: earlier attempts no longer count. */
  reset(): void
  closedBy(nowMs: number): GateClosure | null
  tries(): number
  /** How many attempts in a row ended in trouble. */
  troubles(): number
}

/** Refused attempts of an earlier run, or of another replica. */
export interface EarlierTries {
  readonly tries: number
  readonly troubles?: number
  /** Absent: refused credentials. */
  readonly closing?: GateClosure
  /** Monotonic milliseconds. */
  readonly opensAtMs: number
}

/**
 * The attempts since a token last worked decide the wait, whichever side refused. A token endpoint whose tokens the status API refuses is
 * asked no more often than one that refuses the password.
 */
export function createCredentialGate(earlier: EarlierTries | null = null): CredentialGate {
  let tries = earlier?.tries ?? 0
  let troubles = earlier?.troubles ?? 0
  let opensAtMs = earlier?.opensAtMs ?? Number.NEGATIVE_INFINITY
  let closing: GateClosure = earlier === null ? 'trouble' : (earlier.closing ?? 'credentials')
  return {
    tries: () => tries,
    troubles: () => troubles,
    waitMs: (nowMs) => Math.max(0, opensAtMs - nowMs),
    closedBy: (nowMs) => (opensAtMs > nowMs ? closing : null),
    tried() {
      tries += 1
      troubles = 0
    },
    refused(nowMs) {
      closing = 'credentials'
      opensAtMs = nowMs + (REFUSED_WAITS_MS[Math.max(0, tries - 1)] ?? REFUSED_WAIT_MAX_MS)
    },
    troubled(nowMs, waitMs) {
      closing = 'trouble'
      opensAtMs = nowMs + (waitMs ?? Math.min(TROUBLE_WAIT_MAX_MS, TROUBLE_WAIT_MS * 2 ** troubles))
      troubles = Math.min(troubles + 1, 10)
    },
    reset() {
      tries = 0
      troubles = 0
      opensAtMs = Number.NEGATIVE_INFINITY
    },
  }
}
