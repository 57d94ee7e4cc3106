import { type Audience, type Backfill, isInAudience, isTold } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import type { Subscriber } from '../history/snapshot.ts'
import { encodeEvent } from './delivery-request.ts'
import type { QueuedDelivery } from './dispatch-round.ts'
import { passesFilters, type RelayedEvent } from './endpoint.ts'
import type { Payload } from './feed-entry.ts'
import type { FeedAddition } from './plan-events.ts'

export interface DeliverableEvent {
  /** The event's position in the feed. Each endpoint gets the events of a parcel in this order. */
  readonly sequence: number
  readonly entry: Entry
  readonly parcelId: number
  readonly payload: Payload
  /** Null: the event reports no backfill (DOMAIN 6.6). */
  readonly backfill: Backfill | null
  /** An earlier event has told these endpoints of this entry, so they do not get this event. */
  readonly earlierAudience: Audience
  readonly nowMs: number
}

export interface PlannedDeliveries {
  /** The body that the relay composed; null: the body is the push as received, or there are no deliveries. */
  readonly composed: Uint8Array | null
  readonly deliveries: readonly QueuedDelivery[]
}

/** Plans a delivery to each subscriber that wants the event, unless an earlier event has told it of the entry. */
export function planDeliveries(subscribers: readonly Subscriber[], event: DeliverableEvent): PlannedDeliveries {
  const { entry, parcelId, payload, sequence, nowMs, earlierAudience, backfill } = event
  const offered = relayedEventOf(event)
  const takers = subscribers.filter(
    (subscriber) =>
      passesFilters(subscriber.endpoint, offered) &&
      (backfill === null || isTold(subscriber, { at: sequence, ...backfill })) &&
      !isInAudience(earlierAudience, subscriber),
  )
  const inboxId = payload.kind === 'push' ? payload.inboxId : null
  const toldIn = earlierAudience.kind === 'backfill' ? (earlierAudience.tellings.at(-1)?.at ?? null) : null
  return {
    composed: takers.length > 0 && payload.kind === 'composed' ? encodeEvent({ entry, ...payload }) : null,
    deliveries: takers.map(({ endpoint }) => ({ endpointId: endpoint.id, parcelId, sequence, inboxId, toldIn, nowMs })),
  }
}

/** Returns the fields of an event that the filters of endpoints test. */
function relayedEventOf({ entry, payload }: Pick<DeliverableEvent, 'entry' | 'payload'>): RelayedEvent {
  const { status, detailedStatus, displayToConsumer } = entry
  return { status, detailedStatus, displayToConsumer, distributionType: payload.distributionType }
}

/** Null: only readers of the feed get this event, and endpoints do not. */
export function deliverableEventOf({ event, entry, payload }: FeedAddition, nowMs: number): DeliverableEvent | null {
  const { sequence, parcelId, payloadRef } = event
  if (payloadRef === null || payload === null) return null
  const backfill = payloadRef.kind === 'composed' ? payloadRef.backfill : null
  return { sequence, entry, parcelId, payload, backfill, earlierAudience: payloadRef.earlierAudience, nowMs }
}
