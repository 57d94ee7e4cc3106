import type { PollObservation, PushObservation } from '../history/observation.ts'

/**
 * Something odd about an observation that is recorded all the same. `event_clock_ahead`: a push reports an event in the future, so the
 * carrier's clock or ours is wrong. `upstream_regressed`: the carrier's answer lists fewer entries than are known; the known entries stay
 * (DOMAIN 2.8, 6.7). `upstream_flawed`: invalid items of the answer were skipped. `text_dropped`: texts could not be kept (DOMAIN 4.1).
 */
export type Anomaly = 'event_clock_ahead' | 'upstream_regressed' | 'upstream_flawed' | 'text_dropped'

/** Synchronized clocks differ by less than this. */
const CLOCKS_DIFFER_MS = 5 * 60_000

/**
 * Finds the anomalies of an observation.
 *
 * @param entryCount How many entries the parcel has after the observation was recorded.
 */
export function anomaliesOf(observation: PushObservation | PollObservation, entryCount: number, nowMs: number): readonly Anomaly[] {
  const main = observation.kind === 'push' ? anomalyOfPush(observation, nowMs) : anomalyOfPoll(observation, entryCount)
  if (observation.textsDropped === 0) return main === null ? NONE : [main]
  return main === null ? ['text_dropped'] : [main, 'text_dropped']
}

const NONE: readonly Anomaly[] = []

function anomalyOfPush({ sighting }: PushObservation, nowMs: number): Anomaly | null {
  return sighting.instant.atMs > nowMs + CLOCKS_DIFFER_MS ? 'event_clock_ahead' : null
}

function anomalyOfPoll({ skipped, sightings }: PollObservation, entryCount: number): Anomaly | null {
  if (skipped > 0) return 'upstream_flawed'
  return sightings.length < entryCount ? 'upstream_regressed' : null
}
