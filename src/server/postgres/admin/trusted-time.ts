import type { TimeSample } from '../../replicas/replica-table.rows.ts'

/**
 * Tells the time of a server's clock, but ignores a step forward for a while. Right after such a step, leases that were just renewed would
 * seem to have lapsed long ago.
 */
export interface TrustedTime {
  /** `ttlMs`: how long a step forward is ignored. In that time every living replica renews its lease, so that the lease fits the new time. */
  learn(sample: TimeSample, ttlMs: number): void
  /** The latest time that the server's clock can show now, by the accepted samples; null: there was no sample. */
  nowMs(): number | null
}

/** How far the server's clock and the local monotonic clock may drift apart in a second, the time between two samples. */
const DRIFT_MS = 10

export function createTrustedTime(monotonic: () => number): TrustedTime {
  /** The most by which the server's clock can be ahead of `monotonic()`; null: there was no sample. */
  let aheadMs: number | null = null
  let steppedAtMs: number | null = null
  return {
    learn({ serverMs, askedMs, heardMs }, ttlMs) {
      const mostMs = serverMs + 1 - askedMs
      const hasStepped = aheadMs !== null && serverMs - heardMs > aheadMs + DRIFT_MS
      steppedAtMs = hasStepped ? (steppedAtMs ?? heardMs) : null
      if (aheadMs !== null && hasStepped && heardMs - (steppedAtMs ?? heardMs) < ttlMs) return
      // Accept a step back at once, because an earlier time only makes leases last longer.
      aheadMs = aheadMs === null || hasStepped ? mostMs : Math.min(mostMs, aheadMs + DRIFT_MS)
      steppedAtMs = null
    },
    nowMs: () => (aheadMs === null ? null : Math.floor(monotonic() + aheadMs)),
  }
}
