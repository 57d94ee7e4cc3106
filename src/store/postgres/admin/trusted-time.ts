import type { TimeSample } from '../../../flow/admin/ports.ts'

/**
 * The time of a server's clock, which ignores steps forward. After such a step, leases that were just renewed would seem to have lapsed
 * long ago.
 */
export interface TrustedTime {
  /** @param ttlMs how long a step forward is ignored. After that, every living replica has renewed its lease by the new time. */
  learn(sample: TimeSample, ttlMs: number): void
  /** The latest time that the accepted samples allow; null: there was no sample. */
  nowMs(): number | null
}

/** How far the two clocks may drift apart between two samples, which are a second apart. */
const DRIFT_MS = 10

export function createTrustedTime(monotonic: () => number): TrustedTime {
  /** The most that the server's clock may be ahead of the monotonic one. */
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
