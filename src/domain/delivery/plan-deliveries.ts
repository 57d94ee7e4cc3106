import { type Audience, isInAudience } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import type { Subscriber } from '../history/snapshot.ts'
import { encodeEvent } from './delivery-request.ts'
import type { QueuedDelivery } from './dispatch-round.ts'
import { endpointWants, type RelayedEvent } from './endpoint.ts'
import type { Payload } from './feed-entry.ts'
import type { FeedAddition } from './plan-events.ts'

/** An event of the feed, with all that is needed to make its deliveries. */
export interface DeliverableEvent {
  /** The sequence of the event in the feed. It also orders the deliveries of the parcel. */
  readonly sequence: number
  readonly entry: Entry
  readonly parcelId: number
  readonly payload: Payload
  /** Whether the entry is older than the relay's knowledge of the parcel (DOMAIN 6.6). */
  readonly backfill: boolean
  /** The endpoints that were sent the entry in an earlier event. This event is not sent to them. */
  readonly earlierAudience: Audience
  readonly nowMs: number
}

/**
 * The deliveries of an event. `composed`: the body, if the relay composed it; null: the body is a push as received, or no endpoint is sent
 * the event.
 */
export interface PlannedDeliveries {
  readonly composed: Uint8Array | null
  readonly deliveries: readonly QueuedDelivery[]
}

/** Plans the deliveries of an event: one for each subscriber that wants the event and was not yet sent its entry. */
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

/** Returns the members of an event that the filters of endpoints look at. */
export function relayedEventOf({ entry, payload, backfill }: Pick<DeliverableEvent, 'entry' | 'payload' | 'backfill'>): RelayedEvent {
  const { status, detailedStatus, displayToConsumer } = entry
  return { status, detailedStatus, displayToConsumer, distributionType: payload.distributionType, backfill }
}

/** Returns the event to deliver for an addition to the feed; null: endpoints are not sent this addition. */
export function deliverableEventOf({ event, entry, payload }: FeedAddition, nowMs: number): DeliverableEvent | null {
  const { sequence, parcelId, payloadRef } = event
  if (payloadRef === null || payload === null) return null
  const backfill = payloadRef.kind === 'composed' && payloadRef.backfill
  return { sequence, entry, parcelId, payload, backfill, earlierAudience: payloadRef.earlierAudience, nowMs }
}
