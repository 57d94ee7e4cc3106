const SECOND = 1_000
const MINUTE = 60 * SECOND

/** The wait after the first, second, ... refused try in a row: three tries fit into 15 minutes, then 15 minutes growing to an hour. */
const REFUSED_WAITS_MS: readonly number[] = [SECOND, MINUTE, 15 * MINUTE, 30 * MINUTE]
const REFUSED_WAIT_MAX_MS = 60 * MINUTE
export const CREDENTIAL_WAIT_MAX_MS = REFUSED_WAIT_MAX_MS

/** Trouble that says nothing about the credentials: asked again sooner, but not at the pace of the questions that need a token. */
const TROUBLE_WAIT_MS = SECOND
const TROUBLE_WAIT_MAX_MS = MINUTE

export type GateClosure = 'credentials' | 'trouble'

/** Decides when the credentials may be presented again. Pure bookkeeping in monotonic milliseconds. */
export interface CredentialGate {
  /** Milliseconds until the next try may be made; 0: now. */
  waitMs(nowMs: number): number
  /** The credentials were presented, and accepted or refused. */
  tried(): void
  /** What was tried last was refused, by the token endpoint or by the status API: nothing before the wait is over. */
  refused(nowMs: number): void
  /** The token endpoint could not be asked or answered badly; `waitMs` is its own word on when to ask again. */
  troubled(nowMs: number, waitMs: number | null): void
  /** A token worked, or the credentials changed: what was counted no longer counts. */
  reset(): void
  closedBy(nowMs: number): GateClosure | null
  tries(): number
}

/** Refused tries of an earlier run. */
export interface EarlierTries {
  readonly tries: number
  /** Monotonic. */
  readonly opensAtMs: number
}

/**
 * The tries since a token last worked decide the wait, whichever side refused: a token endpoint that hands out tokens which the status
 * API then refuses is asked no more often than one that refuses the password.
 */
export function createCredentialGate(earlier: EarlierTries | null = null): CredentialGate {
  let tries = earlier?.tries ?? 0
  let troubles = 0
  let opensAtMs = earlier?.opensAtMs ?? Number.NEGATIVE_INFINITY
  let closing: GateClosure = earlier === null ? 'trouble' : 'credentials'
  return {
    tries: () => tries,
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
