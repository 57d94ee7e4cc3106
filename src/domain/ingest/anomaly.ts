import type { PollObservation, PushObservation } from '../history/observation.ts'

/**
 * An oddity of an observation that is recorded all the same. `event_clock_ahead`: a push reports an event in the future, so some clock is
 * wrong. `upstream_regressed`: the carrier's answer lists fewer entries than are known; none is removed (DOMAIN 2.8, 6.7).
 * `upstream_flawed`: some items of the answer were invalid and skipped.
 */
export type Anomaly = 'event_clock_ahead' | 'upstream_regressed' | 'upstream_flawed'

/** Synchronized clocks differ by less, in milliseconds. */
const CLOCKS_DIFFER_MS = 5 * 60_000

/**
 * The anomaly of an observation; null: there is none.
 * @param entryCount the number of the parcel's entries once it is recorded.
 */
export function anomalyOf(observation: PushObservation | PollObservation, entryCount: number, nowMs: number): Anomaly | null {
  if (observation.kind === 'push') return observation.sighting.instant.atMs > nowMs + CLOCKS_DIFFER_MS ? 'event_clock_ahead' : null
  if (observation.skipped > 0) return 'upstream_flawed'
  return observation.sightings.length < entryCount ? 'upstream_regressed' : null
}
