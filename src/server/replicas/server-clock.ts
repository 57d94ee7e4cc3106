import type { Clock } from '../../core/flow/ports.ts'
import type { TimeSample } from './replica-table.rows.ts'

export interface ServerClock extends Clock {
  /** Corrects the clock by one reading of the server's time. */
  adjust(sample: TimeSample): void
}

/**
 * Creates a clock that shows the time of the database server, because the clocks of replicas may differ, and may be set while they run. Between
 * samples it advances with the monotonic clock. Each sample gives an upper and a lower limit for the server's time. The clock is corrected only
 * if it is outside of these limits.
 */
export function createServerClock(monotonic: () => number, first: TimeSample): ServerClock {
  let aheadMs = first.serverMs - (first.askedMs + first.heardMs) / 2
  return {
    now: () => Math.floor(monotonic() + aheadMs),
    monotonic,
    adjust({ serverMs, askedMs, heardMs }) {
      // Add 1, because the server rounds down to whole milliseconds.
      aheadMs = Math.min(serverMs + 1 - askedMs, Math.max(serverMs - heardMs, aheadMs))
    },
  }
}
