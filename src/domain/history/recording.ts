import type { Anomaly } from '../ingest/anomaly.ts'
import type { IncomingPush } from '../ingest/inbox.ts'
import type { PollObservation, QuarantineReason } from './observation.ts'

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
