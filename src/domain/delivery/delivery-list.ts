import type { DeadReason } from './delivery.ts'

/** Ended deliveries of one endpoint: those for which all of this is true. */
export interface DeliverySelection {
  readonly endpointId: string
  readonly states: readonly ('delivered' | 'dead' | 'cancelled')[]
  readonly fromSequence: number
  /** When they were queued at the earliest. */
  readonly fromMs: number
  /** Null: any. */
  readonly deliveryId: number | null
  readonly sequence: number | null
  readonly parcelId: number | null
}

export interface ReplayTask {
  readonly selection: DeliverySelection
  /** The endpoint they are queued for: their own, or another, which then has deliveries of the same events. */
  readonly to: string
  /** When it was asked for: what is selected by its time was queued no later. */
  readonly untilMs: number
}

/** Where a replay goes on: after the delivery with this sequence, or time, and id. */
export interface ReplayCursor {
  readonly at: number
  readonly id: number
}

export interface ReplayRequest extends ReplayTask {
  /** Null: it begins. */
  readonly after: ReplayCursor | null
  readonly limit: number
  readonly nowMs: number
}

export interface ReplayedBatch {
  readonly count: number
  /** Null: there is no more. */
  readonly next: ReplayCursor | null
}

export interface DeliveryQuery {
  /** Null: any. */
  readonly endpointId: string | null
  readonly state: ListedDelivery['state'] | null
  readonly parcelId: number | null
  /** Deliveries with ids below this; null: from the newest. */
  readonly before: number | null
  readonly limit: number
}

export interface DeliveryPage {
  /** The newest first; perhaps fewer than asked for, even none, while there is a `next`. */
  readonly deliveries: readonly FoundDelivery[]
  readonly next: number | null
}

/** A delivery with everything that finds its parcel. */
export interface FoundDelivery extends ListedDelivery {
  readonly identifiers: readonly string[]
}

export interface SentEvent {
  /** That of the endpoint as it stands now. */
  readonly url: string
  /** Null: it is gone by age. */
  readonly body: Uint8Array | null
}

/** `held`: it waits because its endpoint is disabled. */
export interface ListedDelivery {
  readonly deliveryId: number
  readonly endpointId: string
  readonly endpointName: string
  readonly parcelId: number
  readonly sequence: number
  readonly previousSequence: number
  readonly state: 'queued' | 'retrying' | 'held' | 'delivered' | 'dead' | 'cancelled'
  /** Why it is dead or cancelled. */
  readonly reason: DeadReason | 'endpoint_removed' | null
  readonly attempts: number
  readonly queuedAtMs: number
  /** Null: it waits for an earlier one of its parcel, or for its endpoint, which is failing, or it has ended. */
  readonly nextAttemptAtMs: number | null
  readonly settledAtMs: number | null
}

export interface AttemptRecord {
  readonly atMs: number
  readonly durationMs: number
  /** Null: there was no answer, for the reason given. */
  readonly status: number | null
  readonly reason: string | null
  readonly answerStart: Uint8Array
}
