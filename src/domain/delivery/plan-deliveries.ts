import { type Audience, isInAudience } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import type { Subscriber } from '../history/snapshot.ts'
import { encodeEvent } from './delivery-request.ts'
import type { QueuedDelivery } from './dispatch-round.ts'
import { endpointWants, type RelayedEvent } from './endpoint.ts'
import type { Payload } from './feed-entry.ts'
import type { FeedAddition } from './plan-events.ts'

export interface DeliverableEvent {
  /** The event's position in the feed. Each endpoint gets the events of a parcel in this order. */
  readonly sequence: number
  readonly entry: Entry
  readonly parcelId: number
  readonly payload: Payload
  /** Whether the entry is older than the relay's knowledge of the parcel (DOMAIN 6.6). */
  readonly backfill: boolean
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
  const { entry, parcelId, payload, sequence, nowMs, earlierAudience } = event
  const offered = relayedEventOf(event)
  const takers = subscribers.filter(
    ({ endpoint, backfilled }) => endpointWants(endpoint, offered) && !isInAudience(earlierAudience, backfilled),
  )
  const inboxId = payload.kind === 'push' ? payload.inboxId : null
  const toldIn = earlierAudience.kind === 'backfill' ? earlierAudience.at : null
  return {
    composed: takers.length > 0 && payload.kind === 'composed' ? encodeEvent({ entry, ...payload }) : null,
    deliveries: takers.map(({ endpoint }) => ({ endpointId: endpoint.id, parcelId, sequence, inboxId, toldIn, nowMs })),
  }
}

/** Returns the fields of an event that the filters of endpoints test. */
export function relayedEventOf({ entry, payload, backfill }: Pick<DeliverableEvent, 'entry' | 'payload' | 'backfill'>): RelayedEvent {
  const { status, detailedStatus, displayToConsumer } = entry
  return { status, detailedStatus, displayToConsumer, distributionType: payload.distributionType, backfill }
}

/** Null: only readers of the feed get this event, and endpoints do not. */
export function deliverableEventOf({ event, entry, payload }: FeedAddition, nowMs: number): DeliverableEvent | null {
  const { sequence, parcelId, payloadRef } = event
  if (payloadRef === null || payload === null) return null
  const backfill = payloadRef.kind === 'composed' && payloadRef.backfill
  return { sequence, entry, parcelId, payload, backfill, earlierAudience: payloadRef.earlierAudience, nowMs }
}
