import type { Anomaly } from '../ingest/anomaly.ts'
import type { IncomingPush } from '../ingest/inbox.ts'
import type { PollObservation, QuarantineReason } from './observation.ts'

export interface IncomingPoll {
  readonly kind: 'poll'
  readonly observation: PollObservation
  /** Whether an app's question caused the poll: it then watches, and revives, the parcel (DOMAIN 1.5, 6.1). */
  readonly watch: boolean
}

export type Incoming = IncomingPush | IncomingPoll

/** What became of one observation. Everything but `failed` means durable. */
export type RecordOutcome =
  | {
      readonly kind: 'recorded'
      readonly parcelId: number
      readonly changed: boolean
      readonly newEntries: number
      /** Deliveries that were queued for it. */
      readonly queued: number
      /** What was odd about it, to be counted. */
      readonly anomaly?: Anomaly
    }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'quarantined'; readonly reason: QuarantineReason }
  /** A push older than `retention.history`: kept and not recorded, so that sent again under another clock it is no duplicate (DOMAIN 5.4). */
  | { readonly kind: 'expired' }

export interface BatchReport {
  /** Same length and order as the batch. */
  readonly outcomes: readonly RecordOutcome[]
  /** Every parcel whose answers may have changed, those that were joined away included. */
  readonly touchedParcels: readonly number[]
  /** Parcels were joined, so what waits to be sent may have another place in the order by now; absent: none were. */
  readonly joined?: true
  /** How long the transaction took, its commit included. */
  readonly durationMs: number
}

/** What came of processing a push from the inbox again. `settled`: it is recorded already. `body_gone`: its bytes are no longer kept. */
export type Reprocessed =
  /** Of this one push. */
  { readonly kind: 'done'; readonly report: BatchReport } | { readonly kind: 'unknown' | 'settled' | 'body_gone' }
