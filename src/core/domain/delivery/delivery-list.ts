import { z } from 'zod'
import type { SentOrder } from '../history/order-context.ts'
import { isObject, member, readJson } from '../json-body.ts'
import { readInput } from '../read-input.ts'
import type { DeadReason } from './delivery.ts'
import { type WatchdogEventName, watchdogEventIn } from './watchdog-event.ts'

/** Selects the ended deliveries of one endpoint that meet all of these conditions. */
export interface DeliverySelection {
  readonly endpointId: string
  readonly states: readonly ('delivered' | 'dead' | 'cancelled')[]
  readonly fromSequence: number
  /** The delivery was queued at this time or later. */
  readonly fromMs: number
  /** Null: any. */
  readonly deliveryId: number | null
  readonly sequence: number | null
  readonly parcelId: number | null
}

/** A replay that queues ended deliveries again. */
export interface EndedReplay {
  readonly selection: DeliverySelection
  /** The id of the endpoint for which to queue them. Another endpoint than before gets new deliveries of the same events. */
  readonly to: string
  /** When the replay was ordered. A selection by time leaves out deliveries that were queued later. */
  readonly untilMs: number
}

/** The last delivery of the batch before. */
export interface ReplayCursor {
  /** The sequence, or the time in a replay by time. */
  readonly at: number
  readonly id: number
}

export interface ReplayBatch {
  /** Null: this is the first batch. */
  readonly after: ReplayCursor | null
  readonly limit: number
  readonly nowMs: number
}

export type ReplayRequest = EndedReplay & ReplayBatch

export interface ReplayedBatch {
  readonly count: number
  /** Null: the replay is complete. */
  readonly next: ReplayCursor | null
}

/** How many deliveries a replay would queue. */
export interface ReplayCount {
  readonly count: number
  readonly parcels: number
  /** When the oldest of these deliveries was queued; null: there are none. */
  readonly oldestAtMs: number | null
}

export interface DeliveryQuery {
  /** Null: any. */
  readonly endpointId: string | null
  readonly state: ListedDelivery['state'] | null
  readonly parcelId: number | null
  readonly queued?: QueuedSpan
  /** Null: the page begins with the newest delivery. */
  readonly before: DeliveryCursor | null
  readonly limit: number
}

/** From `fromMs` (inclusive) to `toMs` (exclusive), epoch milliseconds. */
export interface QueuedSpan {
  readonly fromMs: number
  readonly toMs: number
}

/**
 * The delivery after which a page begins. In a list by time, the id does not tell the delivery's place, because a replay gives a delivery a new
 * time but no new id.
 */
export interface DeliveryCursor {
  readonly id: number
  readonly queuedAtMs: number
}

export interface DeliveryPage {
  /** Newest first. A page with a `next` may have fewer deliveries than `limit`, or none. */
  readonly deliveries: readonly FoundDelivery[]
  readonly next: DeliveryCursor | null
}

export interface FoundDelivery extends ListedDelivery {
  readonly identifiers: readonly string[]
  /**
   * Null: the bytes are no longer stored, or they are not an event of the carrier. In a list it is also null if there are more than `EVENT_READ_MAX`
   * bytes.
   */
  readonly event: ToldEvent | null
  /** Null: no attempt was made since the delivery was queued, and no earlier attempt is stored. */
  readonly lastAttempt: AttemptRecord | null
}

/** Lists do not read larger events than this, because a page of large events would be slow. */
export const EVENT_READ_MAX = 16 * 1024

/** Of an event of watchdogs: its name, and the rule. */
export interface ToldEvent {
  readonly status: string
  readonly detailedStatus: string
}

/** Returns null if the bytes are not an event. */
export function readToldEvent(body: Uint8Array): ToldEvent | null {
  const reading = readJson(body)
  if (!reading.ok || !isObject(reading.value)) return null
  const [status, detailedStatus] = [member(reading.value, 'status'), member(reading.value, 'detailedStatus')]
  if (typeof status === 'string' && typeof detailedStatus === 'string') return { status, detailedStatus }
  const rule = member(reading.value, 'rule')
  const name = watchdogEventIn(body)
  return name === null || typeof rule !== 'string' ? null : { status: name, detailedStatus: rule }
}

export interface SentEvent {
  /** The URL that the endpoint has now. */
  readonly url: string
  /** The names of fixed headers. */
  readonly headers: readonly string[]
  /** Null: the body is no longer stored (`retention.raw`). */
  readonly body: Uint8Array | null
  /** Absent: the body is another one. */
  readonly event?: WatchdogEventName
}

/** A delivery as operators see it. State `held`: the delivery waits because its endpoint is disabled. Times are epoch milliseconds. */
export interface ListedDelivery {
  readonly deliveryId: number
  readonly endpointId: string
  readonly endpointName: string
  readonly parcelId: number
  readonly sequence: number
  readonly previousSequence: number
  readonly state: 'queued' | 'retrying' | 'held' | 'delivered' | 'dead' | 'cancelled'
  /**
   * Why the delivery is dead or cancelled; null: it is neither. A waiting delivery with `skipped` is not attempted again. It ends as soon as no
   * attempt is running.
   */
  readonly reason: DeadReason | 'skipped' | 'endpoint_removed' | 'held_too_long' | null
  readonly attempts: number
  readonly queuedAtMs: number
  /**
   * When the delivery is attempted next. While its endpoint is failing, this is the time of the next probe. Null: the delivery has ended, or waits
   * for something else than a time.
   */
  readonly nextAttemptAtMs: number | null
  readonly settledAtMs: number | null
}

export interface AttemptRecord {
  readonly atMs: number
  readonly durationMs: number
  /** The status of the answer; null: there was no answer, and `reason` says why. */
  readonly status: number | null
  readonly reason: string | null
  readonly answerStart: Uint8Array
  /** The IP address that was connected to, or that refused the connection; null: there was no connection. */
  readonly address: string | null
}

/** The attempts are newest first. */
export interface InspectedDelivery {
  readonly delivery: FoundDelivery
  readonly attempts: readonly AttemptRecord[]
  /** `order`: what is said of the order of the parcel now; null: nothing. */
  readonly sent: SentEvent & { readonly order: SentOrder | null }
}

/**
 * The result of an order to retry a delivery. `done`: the delivery is due now. `behind`: an earlier delivery of its parcel goes first. `disabled`:
 * its endpoint is disabled. `ended`: it has ended already. `unknown`: there is no such delivery.
 */
export type RetryOutcome = 'done' | 'unknown' | 'disabled' | 'behind' | 'ended'

/** What replaces the replay of missing events, which earlier versions had. */
export const INSTEAD_OF_MISSING =
  'An endpoint is sent everything that happened since it began, so nothing is missing. To send it older events, add an endpoint with "from": N and "backfill": true. For an endpoint that exists, add such an endpoint with "enabled": false, and replay its deliveries to the other with "of".'

/** The body of a request that replays one delivery. The request may have no body. */
export const replayTargetSchema = z.strictObject({ to: z.string().max(100).optional() })

/** Returns the id of the endpoint to which a delivery is replayed; null: the delivery's own endpoint. Throws `bad_request`. */
export function parseReplayTarget(body: unknown): string | null {
  const isEmpty = body === undefined || body === null || body === ''
  return readInput('body', replayTargetSchema, isEmpty ? {} : body).to ?? null
}
