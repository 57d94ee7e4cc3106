import type { Relay } from '../../relay.ts'

export interface RoundTimesPorts extends Pick<Relay, 'clock'> {
  /** Asks for another pass of the dispatcher at a wall-clock time. */
  readonly wake: (atMs: number) => void
}

/** Decides when the dispatcher starts its next round. Times for `lookAt` are epoch milliseconds. */
export type RoundTimes = ReturnType<typeof createRoundTimes>

/** How long to wait after a failure of the store. */
const RETRY_MS = 1000
/** How long an ended attempt waits for others to end, so that one round settles them all. */
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
    /** Forgets the times that `lookAt` noted. Call it when a round starts, because the round reports what is due next. */
    clear(): void {
      lookAtMs = Number.POSITIVE_INFINITY
    },
    /** Makes the next round wait for more attempts to end. Call it for the first attempt that ends after a round. */
    beginWait(): void {
      waitUntilMs = clock.monotonic() + WAIT_MS
    },
    /** Asks for a pass at the end of the wait. */
    wakeAfterWait: () => wake(clock.now() + Math.max(0, waitUntilMs - clock.monotonic())),
    /** Call it when the store has failed. */
    retryLater(): void {
      waitUntilMs = clock.monotonic() + RETRY_MS
      lookAt(clock.now() + RETRY_MS)
    },
    /** Delays the next round. Call it while many pushes are being recorded. `beganMs`: when the last round began, monotonic milliseconds. */
    spaceOut(beganMs: number): void {
      restUntilMs = beganMs + BUSY_ROUND_MS
    },
    /** How long until `spaceOut` allows the next round; 0 or less: it may start now. */
    restMs: () => restUntilMs - clock.monotonic(),
    isLookDue: () => clock.now() >= lookAtMs,
    isWaitOver: () => clock.monotonic() >= waitUntilMs,
    /** Asks for a pass at the next time at which something is due, if there is one. */
    wakeWhenDue(): void {
      if (lookAtMs < Number.POSITIVE_INFINITY) wake(lookAtMs)
    },
  }
}
