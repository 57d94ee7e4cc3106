import type { PollObservation, PushObservation } from '../history/observation.ts'

/**
 * What is odd about an observation that is recorded like any other. `event_clock_ahead`: a push of something that has not happened yet, so a
 * clock somewhere is wrong. `upstream_regressed`: the carrier's answer lists fewer entries than are known; none of them is taken back
 * (DOMAIN 2.8, 6.7). `upstream_flawed`: some of its items could not be understood and were skipped.
 */
export type Anomaly = 'event_clock_ahead' | 'upstream_regressed' | 'upstream_flawed'

/** Clocks that are kept in time differ by less, in milliseconds. */
const CLOCKS_DIFFER_MS = 5 * 60_000

/** @param entryCount how many entries its parcel has once it is recorded. */
export function anomalyOf(observation: PushObservation | PollObservation, entryCount: number, nowMs: number): Anomaly | null {
  if (observation.kind === 'push') return observation.sighting.instant.atMs > nowMs + CLOCKS_DIFFER_MS ? 'event_clock_ahead' : null
  if (observation.skipped > 0) return 'upstream_flawed'
  return observation.sightings.length < entryCount ? 'upstream_regressed' : null
}
