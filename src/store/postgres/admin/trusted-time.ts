import type { TimeSample } from '../../../flow/admin/ports.ts'

/** The time of a server's clock without its steps forward: after one, leases that were just renewed seem to have lapsed long ago. */
export interface TrustedTime {
  /** @param ttlMs how long a step is not believed: by then everybody alive has renewed a lease after it. */
  learn(sample: TimeSample, ttlMs: number): void
  /** The latest that it can be by what is believed; null: the server was never heard. */
  nowMs(): number | null
}

/** Clocks may run apart by so much from one sample to the next. Samples are a second apart. */
const DRIFT_MS = 10

export function createTrustedTime(monotonic: () => number): TrustedTime {
  /** How far the server's clock is ahead of the monotonic one, at most. */
  let aheadMs: number | null = null
  let steppedAtMs: number | null = null
  return {
    learn({ serverMs, askedMs, heardMs }, ttlMs) {
      const mostMs = serverMs + 1 - askedMs
      const hasStepped = aheadMs !== null && serverMs - heardMs > aheadMs + DRIFT_MS
      steppedAtMs = hasStepped ? (steppedAtMs ?? heardMs) : null
      if (aheadMs !== null && hasStepped && heardMs - (steppedAtMs ?? heardMs) < ttlMs) return
      // A step back is believed at once: with less time fewer leases have lapsed.
      aheadMs = aheadMs === null || hasStepped ? mostMs : Math.min(mostMs, aheadMs + DRIFT_MS)
      steppedAtMs = null
    },
    nowMs: () => (aheadMs === null ? null : Math.floor(monotonic() + aheadMs)),
  }
}
