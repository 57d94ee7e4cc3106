import { hash } from 'node:crypto'
import type { IncomingPush } from '../ingest/inbox.ts'
import type { CadencePolicy } from '../polling/cadence.ts'
import type { ErasureRules } from './erased.ts'
import type { PollObservation, PushObservation, QuarantineReason } from './observation.ts'

export interface IncomingPoll {
  readonly kind: 'poll'
  readonly observation: PollObservation
  /** Whether the poll answers an app's question. If so, recording it also begins to watch the parcel, or renews the watch (DOMAIN 1.5, 6.1). */
  readonly watch: boolean
}

export type Incoming = IncomingPush | IncomingPoll

/** The outcome of one observation. Every push except an `erased` one is committed to the store, whatever its outcome. */
export type RecordOutcome =
  | {
      readonly kind: 'recorded'
      readonly parcelId: number
      readonly changed: boolean
      readonly newEntries: number
      /** How many deliveries were queued because of the observation. */
      readonly queued: number
      /** Oddities of the observation, which metrics count. Absent: the observation had no oddity. */
      readonly anomalies?: readonly Anomaly[]
    }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'quarantined'; readonly reason: QuarantineReason }
  /**
   * The push is older than `retention.history`, so it is stored but not recorded. The relay's clock may have been wrong. If the same push comes
   * again after the clock was corrected, it is recorded (DOMAIN 5.4).
   */
  | { readonly kind: 'expired' }
  /** The observation is about an erased parcel. It was counted, but not stored. */
  | { readonly kind: 'erased' }

export interface BatchReport {
  /** In the order of the batch. */
  readonly outcomes: readonly RecordOutcome[]
  /** The ids of all parcels whose served history may have changed, including parcels that were joined to others. */
  readonly touchedParcels: readonly number[]
  /** Set if parcels were joined, which may change the order of their waiting deliveries. */
  readonly joined?: true
  /** How long the transaction took, including its commit, milliseconds. */
  readonly durationMs: number
}

/**
 * The outcome of processing a push of the inbox again. `done`: the push was processed, and the report says whether it was recorded.
 * `settled`: it had been recorded before. `body_gone`: its bytes were deleted. `unknown`: there is no such push.
 */
export type Reprocessed = { readonly kind: 'done'; readonly report: BatchReport } | { readonly kind: 'unknown' | 'settled' | 'body_gone' }

/** Observations that are recorded in one transaction. `nowMs`: epoch milliseconds. */
export interface RecordBatch {
  readonly nowMs: number
  readonly observations: readonly Incoming[]
  /** For each observation, the digest of the push's body (`pushDigest`); '' for a poll. */
  readonly digests: readonly string[]
}

export function recordBatch(observations: readonly Incoming[], nowMs: number): RecordBatch {
  return { nowMs, observations, digests: observations.map((one) => (one.kind === 'push' ? pushDigest(one.body) : '')) }
}

/**
 * Returns a digest by which a pushed body is recognised after its bytes were deleted: the first 12 bytes of its SHA-256, as Latin-1 text.
 * Digests are compared only within a parcel (DOMAIN 5.4), so 12 bytes suffice.
 */
export function pushDigest(body: Uint8Array): string {
  // Node.js is three times as fast if it returns the digest as text and not as a buffer.
  return hash('sha256', body, 'binary').slice(0, 12)
}

/** The settings for recording observations. Durations are in milliseconds. */
export interface RecordRules extends ErasureRules {
  readonly cadence: CadencePolicy
  readonly missedPushGraceMs: number
  readonly historyRetentionMs: number
  /**
   * When the store was restored from a backup, epoch milliseconds; null or absent: never. Earlier pushes do not count as missed, because
   * they may have come to the store that the restore replaced.
   */
  readonly restoredAtMs?: number | null
}

/**
 * Something odd about an observation that is recorded all the same. `event_clock_ahead`: a push reports an event in the future, so the
 * carrier's clock or ours is wrong. `upstream_regressed`: the carrier's answer lists fewer entries than are known; the known entries stay
 * (DOMAIN 2.8, 6.7). `upstream_flawed`: invalid items of the answer were skipped. `text_dropped`: texts could not be kept (DOMAIN 4.1).
 */
type Anomaly = 'event_clock_ahead' | 'upstream_regressed' | 'upstream_flawed' | 'text_dropped'

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

/** A summary of a commit, for the metrics, the dispatcher and the feed. */
export interface CommitStats {
  readonly size: number
  readonly durationMs: number
  /** The number of observations by result. */
  readonly merged: readonly (readonly [result: string, count: number])[]
  readonly queued: boolean
  /** Whether parcels were joined, so that the order of waiting deliveries may have changed. */
  readonly joined: boolean
}

export function commitStatsOf({ outcomes, durationMs, joined }: Pick<BatchReport, 'outcomes' | 'durationMs' | 'joined'>): CommitStats {
  const merged = new Map<string, number>()
  const add = (result: string, by: number) => merged.set(result, (merged.get(result) ?? 0) + by)
  let queued = false
  for (const outcome of outcomes) {
    if (outcome.kind !== 'recorded') {
      add(outcome.kind, 1)
      continue
    }
    for (const anomaly of outcome.anomalies ?? []) add(anomaly, 1)
    if (!outcome.changed) add('unchanged', 1)
    else if (outcome.newEntries === 0) add('updated', 1)
    else add('new_entry', outcome.newEntries)
    if (outcome.queued > 0) queued = true
  }
  return { size: outcomes.length, durationMs, merged: [...merged], queued, joined: joined === true }
}
