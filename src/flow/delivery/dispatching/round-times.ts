import type { Clock } from '../../ports.ts'

export interface RoundTimesPorts {
  readonly clock: Clock
  /** Asks for another pass of the dispatcher at a wall-clock time. */
  readonly wake: (atMs: number) => void
}

/** Decides when the dispatcher starts its next round. Times for `lookAt` are epoch milliseconds. */
export type RoundTimes = ReturnType<typeof createRoundTimes>

/** How long to wait after a failure of the store. */
const RETRY_MS = 1000
/** How long an ended attempt waits for other attempts to end, so that one round settles them all. */
const WAIT_MS = 5
/** The least time between the starts of two rounds while many pushes arrive. Fewer and larger rounds delay the senders of pushes less. */
const BUSY_ROUND_MS = 10

export function createRoundTimes({ clock, wake }: RoundTimesPorts) {
  let lookAtMs = Number.NEGATIVE_INFINITY
  /** Monotonic milliseconds, like `restUntilMs`. */
  let waitUntilMs = 0
  let restUntilMs = Number.NEGATIVE_INFINITY

  function lookAt(atMs: number): void {
    lookAtMs = Math.min(lookAtMs, atMs)
    wake(lookAtMs)
  }

  return {
    /** Lets the next pass start a round, because something may be due already. */
    lookNow(): void {
      lookAtMs = Number.NEGATIVE_INFINITY
    },
    /** Notes a time at which something is due. Only the earliest of these times counts. */
    lookAt,
    /** Forgets when something is due. Call it when a round starts, because the round reports this again. */
    clear(): void {
      lookAtMs = Number.POSITIVE_INFINITY
    },
    /** Makes the next round wait a moment, so that it settles several attempts. Call it when the first attempt since a round has ended. */
    beginWait(): void {
      waitUntilMs = clock.monotonic() + WAIT_MS
    },
    /** Asks for a pass when the wait that `beginWait` has begun is over. */
    wakeAfterWait: () => wake(clock.now() + Math.max(0, waitUntilMs - clock.monotonic())),
    /** Delays the next round by a second. Call it when the store has failed. */
    retryLater(): void {
      waitUntilMs = clock.monotonic() + RETRY_MS
      lookAt(clock.now() + RETRY_MS)
    },
    /** Delays the next round after the one that began at `beganMs` (monotonic milliseconds). Call it while many pushes are being recorded. */
    spaceOut(beganMs: number): void {
      restUntilMs = beganMs + BUSY_ROUND_MS
    },
    /** How long until the next round may start, in milliseconds; 0 or less: now. */
    restMs: () => restUntilMs - clock.monotonic(),
    isLookDue: () => clock.now() >= lookAtMs,
    /** Whether the first ended attempt has waited long enough. */
    isWaitOver: () => clock.monotonic() >= waitUntilMs,
    /** Asks for a pass when something is due, if that time is known. */
    wakeWhenDue(): void {
      if (lookAtMs < Number.POSITIVE_INFINITY) wake(lookAtMs)
    },
  }
}
