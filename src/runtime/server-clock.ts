import type { TimeSample } from '../flow/admin/ports.ts'
import type { Clock } from '../flow/ports.ts'

export interface ServerClock extends Clock {
  follow(sample: TimeSample): void
}

/**
 * The clock of a server that several relays share: their own may differ, and may be set while they run. Between samples it runs like the
 * monotonic clock. A sample bounds how far the two are apart; within the bounds the time goes on undisturbed.
 */
export function createServerClock(monotonic: () => number, first: TimeSample): ServerClock {
  let aheadMs = first.serverMs - (first.askedMs + first.heardMs) / 2
  return {
    now: () => Math.floor(monotonic() + aheadMs),
    monotonic,
    follow({ serverMs, askedMs, heardMs }) {
      // The server gives whole milliseconds.
      aheadMs = Math.min(serverMs + 1 - askedMs, Math.max(serverMs - heardMs, aheadMs))
    },
  }
}
