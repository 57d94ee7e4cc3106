import type { DeadReason } from './delivery.ts'

/** Selects ended deliveries of one endpoint. All conditions must hold. */
export interface DeliverySelection {
  readonly endpointId: string
  readonly states: readonly ('delivered' | 'dead' | 'cancelled')[]
  readonly fromSequence: number
  /** Queued at this time (epoch milliseconds) or later. */
  readonly fromMs: number
  /** Null: any. */
  readonly deliveryId: number | null
  readonly sequence: number | null
  readonly parcelId: number | null
}

/** Which deliveries to queue again, and for which endpoint. */
export interface ReplayTask {
  readonly selection: DeliverySelection
  /** The id of the endpoint to queue them for: their own, or another one, which then gets deliveries of the same events. */
  readonly to: string
  /** When the replay was requested, epoch milliseconds. Deliveries queued later are not selected by time. */
  readonly untilMs: number
}

/** Where a replay continues: after the delivery with this sequence (or time) and id. */
export interface ReplayCursor {
  readonly at: number
  readonly id: number
}

/** One batch of a replay. */
export interface ReplayRequest extends ReplayTask {
  /** Null: from the start. */
  readonly after: ReplayCursor | null
  readonly limit: number
  readonly nowMs: number
}

/** The result of one batch of a replay. */
export interface ReplayedBatch {
  readonly count: number
  /** Null: nothing is left. */
  readonly next: ReplayCursor | null
}

/** Which deliveries to list. */
export interface DeliveryQuery {
  /** Null: any. */
  readonly endpointId: string | null
  readonly state: ListedDelivery['state'] | null
  readonly parcelId: number | null
  /** Deliveries with ids below this; null: from the newest. */
  readonly before: number | null
  readonly limit: number
}

/** A page of deliveries. */
export interface DeliveryPage {
  /** The newest first. A page may hold fewer than asked for, even none, while there is a `next`. */
  readonly deliveries: readonly FoundDelivery[]
  readonly next: number | null
}

/** A delivery with all identifiers of its parcel. */
export interface FoundDelivery extends ListedDelivery {
  readonly identifiers: readonly string[]
}

/** What an attempt of a delivery sends. */
export interface SentEvent {
  /** The endpoint's current URL. */
  readonly url: string
  /** Null: it is no longer kept (`retention.raw`). */
  readonly body: Uint8Array | null
}

/** A delivery as operators see it. `held`: it waits because its endpoint is disabled. Times are epoch milliseconds. */
export interface ListedDelivery {
  readonly deliveryId: number
  readonly endpointId: string
  readonly endpointName: string
  readonly parcelId: number
  readonly sequence: number
  readonly previousSequence: number
  readonly state: 'queued' | 'retrying' | 'held' | 'delivered' | 'dead' | 'cancelled'
  /** Why it is dead or cancelled. `skipped` before that: it is claimed no more, and ends when no attempt of it is under way. */
  readonly reason: DeadReason | 'skipped' | 'endpoint_removed' | null
  readonly attempts: number
  readonly queuedAtMs: number
  /** Null: it waits for an earlier delivery of its parcel or for its failing endpoint, or it has ended. */
  readonly nextAttemptAtMs: number | null
  readonly settledAtMs: number | null
}

/** An attempt as it is kept for operators. */
export interface AttemptRecord {
  readonly atMs: number
  readonly durationMs: number
  /** Null: there was no answer, for the reason in `reason`. */
  readonly status: number | null
  readonly reason: string | null
  readonly answerStart: Uint8Array
}

/** A delivery with its attempts, the last first, and what an attempt sends. */
export interface InspectedDelivery {
  readonly delivery: FoundDelivery
  readonly attempts: readonly AttemptRecord[]
  readonly sent: SentEvent
}

/** Whether a delivery was made due now. `behind`: an earlier one of its parcel goes first. `disabled`: its endpoint is. */
export type RetryOutcome = 'done' | 'unknown' | 'disabled' | 'behind' | 'ended'
