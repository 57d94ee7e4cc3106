import type { Anomaly } from '../ingest/anomaly.ts'
import type { IncomingPush } from '../ingest/inbox.ts'
import type { PollObservation, QuarantineReason } from './observation.ts'

/** A poll on its way to be recorded. */
export interface IncomingPoll {
  readonly kind: 'poll'
  readonly observation: PollObservation
  /** Whether an app's question caused the poll. Then recording also watches and reactivates the parcel (DOMAIN 1.5, 6.1). */
  readonly watch: boolean
}

/** An observation on its way to be recorded. */
export type Incoming = IncomingPush | IncomingPoll

/** The outcome of one observation. Whatever it is, a push with an outcome is durable. */
export type RecordOutcome =
  | {
      readonly kind: 'recorded'
      readonly parcelId: number
      readonly changed: boolean
      readonly newEntries: number
      /** How many deliveries were queued for it. */
      readonly queued: number
      /** Oddities of the observation. The relay counts each. Absent: there were none. */
      readonly anomalies?: readonly Anomaly[]
    }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'quarantined'; readonly reason: QuarantineReason }
  /**
   * A push older than `retention.history`. It is stored but not recorded, so if the clock was wrong, the same push can be recorded later
   * (DOMAIN 5.4).
   */
  | { readonly kind: 'expired' }
  /** The observation is about an erased parcel. It was counted, and nothing of it was kept. */
  | { readonly kind: 'erased' }

/** The result of recording a batch. */
export interface BatchReport {
  /** In the order of the batch. */
  readonly outcomes: readonly RecordOutcome[]
  /** The ids of all parcels whose answers may have changed, including parcels that were joined to others. */
  readonly touchedParcels: readonly number[]
  /** Parcels were joined, so the order of their waiting deliveries may have changed. Absent: none were joined. */
  readonly joined?: true
  /** How long the transaction took, including its commit. */
  readonly durationMs: number
}

/**
 * The outcome of reprocessing a push of the inbox. `done`: it was processed; the report says whether it was recorded. `settled`: it was
 * recorded before. `body_gone`: its bytes are no longer kept. `unknown`: there is no such push.
 */
export type Reprocessed = { readonly kind: 'done'; readonly report: BatchReport } | { readonly kind: 'unknown' | 'settled' | 'body_gone' }
