const SECOND = 1_000
const MINUTE = 60 * SECOND

/**
 * The wait after the first, second and further refused attempts in a row: three attempts within 15 minutes, then pauses that grow from 15
 * minutes to an hour.
 */
const REFUSED_WAITS_MS: readonly number[] = [SECOND, MINUTE, 15 * MINUTE, 30 * MINUTE]
const REFUSED_WAIT_MAX_MS = 60 * MINUTE
export const CREDENTIAL_WAIT_MAX_MS = REFUSED_WAIT_MAX_MS

/**
 * The wait after trouble that says nothing about the credentials. It is shorter than after a refusal, but keeps calls from requesting a
 * token each.
 */
const TROUBLE_WAIT_MS = SECOND
const TROUBLE_WAIT_MAX_MS = MINUTE

/** Why the gate is closed: refused credentials, or other trouble. */
export type GateClosure = 'credentials' | 'trouble'

/** Decides when the credentials may be tried again. It only calculates, in monotonic milliseconds. */
export interface CredentialGate {
  /** Milliseconds until the next attempt; 0: it may be made now. */
  waitMs(nowMs: number): number
  /** Counts an attempt, whether it was accepted or refused. */
  tried(): void
  /** Notes that the token endpoint or the status API has refused the last attempt. Closes the gate. */
  refused(nowMs: number): void
  /** Notes that the token endpoint could not be reached, or its answer could not be used. `waitMs`: its `Retry-After`, if any. */
  troubled(nowMs: number, waitMs: number | null): void
  /** Forgets earlier attempts, because a token worked or the credentials have changed. */
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
 * The attempts since a token last worked decide the wait, whichever side has refused. So a token endpoint whose tokens the status API
 * refuses is asked no more often than one that refuses the password.
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
