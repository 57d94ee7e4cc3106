import type { TimeSample } from '../flow/admin/ports.ts'
import type { Clock } from '../flow/ports.ts'

export interface ServerClock extends Clock {
  /** Corrects the clock by one reading of the server's time. */
  adjust(sample: TimeSample): void
}

/**
 * The clock of a server that several relays share. Their own clocks may differ, and may be set while they run. Between samples it runs like
 * the monotonic clock. A sample gives an upper and a lower limit for the server's time, and the clock changes only if it is outside of
 * these limits.
 */
export function createServerClock(monotonic: () => number, first: TimeSample): ServerClock {
  let aheadMs = first.serverMs - (first.askedMs + first.heardMs) / 2
  return {
    now: () => Math.floor(monotonic() + aheadMs),
    monotonic,
    adjust({ serverMs, askedMs, heardMs }) {
      // The server rounds down to whole milliseconds.
      aheadMs = Math.min(serverMs + 1 - askedMs, Math.max(serverMs - heardMs, aheadMs))
    },
  }
}
