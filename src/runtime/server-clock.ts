import type { TimeSample } from '../flow/admin/ports.ts'
import type { Clock } from '../flow/ports.ts'

export interface ServerClock extends Clock {
  /** Corrects the clock by one reading of the server's time. */
  adjust(sample: TimeSample): void
}

/**
 * The clock of a server that several relays share, because their own clocks may differ and may be set while they run. Between samples it runs
 * like the monotonic clock. A sample only bounds the difference of the two, and the time changes only if it is out of bounds.
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
