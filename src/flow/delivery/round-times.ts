import type { Clock } from '../ports.ts'

export interface RoundTimesPorts {
  readonly clock: Clock
  /** Asks for another pass of the dispatcher at a time of the wall clock. */
  readonly wake: (atMs: number) => void
}

/** When the dispatcher asks the writer for its next round. Times for `lookAt` are epoch milliseconds. */
export interface RoundTimes {
  /** Something may be due already: the next pass asks for a round. */
  lookNow(): void
  /** Something falls due then; the earliest time stands. */
  lookAt(atMs: number): void
  /** A round was asked for: it finds out anew when something falls due. */
  clear(): void
  /** The first attempt since the last round ended: it waits a moment for others. */
  beginWait(): void
  /** Asks for a pass when that wait is over. */
  wakeAfterWait(): void
  /** The store failed: what ended waits for another try. */
  retryLater(): void
  /** Many pushes are being recorded: rounds are kept apart, counted from the start of this one (monotonic milliseconds). */
  spaceOut(beganMs: number): void
  /** How long until another round may be asked for, in milliseconds; 0 or less: now. */
  restMs(): number
  /** Whether something may have fallen due. */
  isLookDue(): boolean
  /** Whether what ended first has waited long enough. */
  isWaitOver(): boolean
  /** Asks for a pass when something falls due, if that time is known. */
  wakeWhenDue(): void
}

/** How long after the store failed it is tried again. */
const RETRY_MS = 1000
/** How long an attempt that ended may wait to be written down with others. */
const WAIT_MS = 5
/** The least time between two rounds in a rush of pushes: the senders of pushes wait less for fewer, larger rounds. */
const BUSY_ROUND_MS = 10

export function createRoundTimes({ clock, wake }: RoundTimesPorts): RoundTimes {
  /** By the wall clock. */
  let lookAtMs = Number.NEGATIVE_INFINITY
  /** By the monotonic clock, like the next. */
  let waitUntilMs = 0
  let restUntilMs = Number.NEGATIVE_INFINITY

  function lookAt(atMs: number): void {
    lookAtMs = Math.min(lookAtMs, atMs)
    wake(lookAtMs)
  }

  return {
    lookNow() {
      lookAtMs = Number.NEGATIVE_INFINITY
    },
    lookAt,
    clear() {
      lookAtMs = Number.POSITIVE_INFINITY
    },
    beginWait() {
      waitUntilMs = clock.monotonic() + WAIT_MS
    },
    wakeAfterWait: () => wake(clock.now() + Math.max(0, waitUntilMs - clock.monotonic())),
    retryLater() {
      waitUntilMs = clock.monotonic() + RETRY_MS
      lookAt(clock.now() + RETRY_MS)
    },
    spaceOut(beganMs) {
      restUntilMs = beganMs + BUSY_ROUND_MS
    },
    restMs: () => restUntilMs - clock.monotonic(),
    isLookDue: () => clock.now() >= lookAtMs,
    isWaitOver: () => clock.monotonic() >= waitUntilMs,
    wakeWhenDue() {
      if (lookAtMs < Number.POSITIVE_INFINITY) wake(lookAtMs)
    },
  }
}
