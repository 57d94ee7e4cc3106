import type { Clock } from '../../ports.ts'

export interface RoundTimesPorts {
  readonly clock: Clock
  /** Requests another pass of the dispatcher at a time of the wall clock. */
  readonly wake: (atMs: number) => void
}

/** Decides when the dispatcher starts its next round. Times for `lookAt` are epoch milliseconds. */
export type RoundTimes = ReturnType<typeof createRoundTimes>

/** The wait after a failure of the store, before the next try. */
const RETRY_MS = 1000
/** How long an ended attempt may wait to be settled with others. */
const WAIT_MS = 5
/**
 * The minimum time between two rounds while pushes arrive as fast as they are recorded: fewer, larger rounds keep their senders waiting
 * less.
 */
const BUSY_ROUND_MS = 10

export function createRoundTimes({ clock, wake }: RoundTimesPorts) {
  /** Epoch milliseconds. */
  let lookAtMs = Number.NEGATIVE_INFINITY
  /** Monotonic milliseconds, like the next. */
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
    /** Notes that something falls due at this time; the earliest time counts. */
    lookAt,
    /** To be called when a round starts, which finds out again when something falls due. */
    clear(): void {
      lookAtMs = Number.POSITIVE_INFINITY
    },
    /** To be called when the first attempt since the last round has ended. That attempt waits a moment, to be settled with others. */
    beginWait(): void {
      waitUntilMs = clock.monotonic() + WAIT_MS
    },
    /** Requests a pass for when that wait is over. */
    wakeAfterWait: () => wake(clock.now() + Math.max(0, waitUntilMs - clock.monotonic())),
    /** To be called when the store has failed. Ended attempts wait for another try. */
    retryLater(): void {
      waitUntilMs = clock.monotonic() + RETRY_MS
      lookAt(clock.now() + RETRY_MS)
    },
    /** Keeps the next round apart from the one that began at `beganMs` (monotonic milliseconds), because many pushes are being recorded. */
    spaceOut(beganMs: number): void {
      restUntilMs = beganMs + BUSY_ROUND_MS
    },
    /** How long until the next round may start, in milliseconds; 0 or less: now. */
    restMs: () => restUntilMs - clock.monotonic(),
    /** Whether something may be due. */
    isLookDue: () => clock.now() >= lookAtMs,
    /** Whether the first ended attempt has waited long enough. */
    isWaitOver: () => clock.monotonic() >= waitUntilMs,
    /** Requests a pass for when something falls due, if that time is known. */
    wakeWhenDue(): void {
      if (lookAtMs < Number.POSITIVE_INFINITY) wake(lookAtMs)
    },
  }
}
