import { isObject, member, readJson } from '../json-body.ts'
import type { DeadReason } from './delivery.ts'
import type { MissingSelection } from './missing.ts'

/** Selects ended deliveries of one endpoint. All conditions must be true. */
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
export interface EndedReplay {
  readonly selection: DeliverySelection
  /** The id of the endpoint for which to queue them. It may be another endpoint, which then gets deliveries of the same events. */
  readonly to: string
  /** When the replay was ordered, epoch milliseconds. If deliveries are selected by time, those queued later are left out. */
  readonly untilMs: number
}

/** Which events to queue for an endpoint that never received them. */
export interface MissingReplay {
  readonly missing: MissingSelection
  /** The id of the endpoint. */
  readonly to: string
}

export type ReplayTask = EndedReplay | MissingReplay

/** Where a replay continues: after the delivery with this sequence (or time) and id, or after the event with this sequence (and id 0). */
export interface ReplayCursor {
  readonly at: number
  readonly id: number
}

/** One batch of a replay. */
export interface ReplayBatch {
  /** Null: from the start. */
  readonly after: ReplayCursor | null
  readonly limit: number
  readonly nowMs: number
}

export type EndedReplayRequest = EndedReplay & ReplayBatch
export type ReplayRequest = ReplayTask & ReplayBatch

/** The result of one batch of a replay. */
export interface ReplayedBatch {
  readonly count: number
  /** Null: nothing is left. */
  readonly next: ReplayCursor | null
}

/** How many deliveries a replay would queue. */
export interface ReplayCount {
  readonly count: number
  /** How many parcels they belong to. */
  readonly parcels: number
  /** When the oldest of them was queued, epoch milliseconds; null: there are none. */
  readonly oldestAtMs: number | null
}

/** Which deliveries to list. */
export interface DeliveryQuery {
  /** Null: any. */
  readonly endpointId: string | null
  readonly state: ListedDelivery['state'] | null
  readonly parcelId: number | null
  /** Queued in this time; absent: at any time. */
  readonly queued?: QueuedSpan
  /** Only deliveries that come after this cursor in the list; null: from the newest. */
  readonly before: DeliveryCursor | null
  readonly limit: number
}

/** From `fromMs` (inclusive) to `toMs` (exclusive), epoch milliseconds. */
export interface QueuedSpan {
  readonly fromMs: number
  readonly toMs: number
}

/**
 * Where a page of deliveries begins: after this delivery. A list ordered by time also needs `queuedAtMs`, because a replayed delivery has a
 * new time but its old id.
 */
export interface DeliveryCursor {
  readonly id: number
  readonly queuedAtMs: number
}

/** A page of deliveries. */
export interface DeliveryPage {
  /** The newest first. While there is a `next`, a page may hold fewer than asked for, even none. */
  readonly deliveries: readonly FoundDelivery[]
  readonly next: DeliveryCursor | null
}

/** A delivery with all identifiers of its parcel, the status it reports, and the end of its last attempt. */
export interface FoundDelivery extends ListedDelivery {
  readonly identifiers: readonly string[]
  /**
   * Null: the bytes are no longer kept, or they are not an event of the carrier. In a list it is also null for more than `EVENT_READ_MAX`
   * bytes.
   */
  readonly event: ToldEvent | null
  /** Null: no attempt was made since it was queued, and no earlier attempt is kept. */
  readonly lastAttempt: AttemptRecord | null
}

/** The largest event that a list reads, in bytes. So the cost of a page depends on its length only. */
export const EVENT_READ_MAX = 16 * 1024

/** The status that an event reports about its parcel. */
export interface ToldEvent {
  readonly status: string
  readonly detailedStatus: string
}

/** Reads what an event reports about its parcel; null: the bytes are not an event. */
export function readToldEvent(body: Uint8Array): ToldEvent | null {
  const reading = readJson(body)
  if (!reading.ok || !isObject(reading.value)) return null
  const [status, detailedStatus] = [member(reading.value, 'status'), member(reading.value, 'detailedStatus')]
  return typeof status === 'string' && typeof detailedStatus === 'string' ? { status, detailedStatus } : null
}

/** The request that an attempt sends. */
export interface SentEvent {
  /** The present URL of the endpoint. */
  readonly url: string
  /** The names of its fixed headers. */
  readonly headers: readonly string[]
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
  /**
   * Why it is dead or cancelled. A waiting delivery may also have `skipped`. It is then no longer claimed, and ends as soon as no attempt
   * of it is running.
   */
  readonly reason: DeadReason | 'skipped' | 'endpoint_removed' | 'held_too_long' | null
  readonly attempts: number
  readonly queuedAtMs: number
  /**
   * When it is attempted next. While its endpoint is failing, this is the time of the next probe. Null: it waits for an earlier delivery of
   * its parcel, or it has ended.
   */
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
  /** The IP address that it went to, or that refused it; null: there was no connection. */
  readonly address: string | null
}

/** A delivery with its attempts, the last first, and the request that an attempt sends. */
export interface InspectedDelivery {
  readonly delivery: FoundDelivery
  readonly attempts: readonly AttemptRecord[]
  readonly sent: SentEvent
}

/**
 * The result of retrying a delivery. `done`: it is due now. `behind`: an earlier delivery of its parcel goes first. `disabled`: its
 * endpoint is disabled. `ended`: it has ended already. `unknown`: there is no such delivery.
 */
export type RetryOutcome = 'done' | 'unknown' | 'disabled' | 'behind' | 'ended'
