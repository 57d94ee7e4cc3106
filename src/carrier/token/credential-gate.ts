const SECOND = 1_000
const MINUTE = 60 * SECOND

/** The waits after the first, second, third and fourth refused attempt in a row. After later attempts the wait is `REFUSED_WAIT_MAX_MS`. */
const REFUSED_WAITS_MS: readonly number[] = [SECOND, MINUTE, 15 * MINUTE, 30 * MINUTE]
const REFUSED_WAIT_MAX_MS = 60 * MINUTE
export const CREDENTIAL_WAIT_MAX_MS = REFUSED_WAIT_MAX_MS

/**
 * The first wait after trouble that is no refusal of the credentials. It doubles with each further trouble, up to `TROUBLE_WAIT_MAX_MS`. During the
 * wait no call requests a token.
 */
const TROUBLE_WAIT_MS = SECOND
const TROUBLE_WAIT_MAX_MS = MINUTE

export type GateClosure = 'credentials' | 'trouble'

/** Decides when the credentials may be tried again. All times are monotonic milliseconds. */
export interface CredentialGate {
  /** Returns how many milliseconds remain until the next attempt may be made; 0: it may be made now. */
  waitMs(nowMs: number): number
  /** Counts an attempt that the token endpoint has accepted or refused. An attempt that ended in trouble is not counted here. */
  tried(): void
  /** Notes that the token endpoint or the status API has refused the last attempt. Closes the gate. */
  refused(nowMs: number): void
  /** Notes that the token endpoint was not reached or gave no usable answer. Closes the gate. `waitMs`: its `Retry-After`; null: none. */
  troubled(nowMs: number, waitMs: number | null): void
  /** Forgets earlier attempts, because a token worked or the credentials have changed. */
  reset(): void
  closedBy(nowMs: number): GateClosure | null
  tries(): number
  /** How many attempts in a row ended in trouble. */
  troubles(): number
}

/** The attempts of an earlier run, or of another replica. */
export interface EarlierTries {
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
