import type { Audience, Backfill } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import type { FeedItem, FeedKind, FeedParcel } from './feed-event.ts'

/** What the body of a delivery is made from: the bytes of a push, or an event that the relay composes from an entry (DOMAIN 7.1). */
export type Payload =
  | { readonly kind: 'push'; readonly inboxId: number; readonly distributionType: string }
  | { readonly kind: 'composed'; readonly trackingIds: readonly string[]; readonly distributionType: string }

export interface FeedEntriesRequest {
  /** The endpoint that catches up. */
  readonly endpointId: string
  readonly after: number
  readonly limit: number
}

/** Consecutive events of the feed, as they are sent to endpoints. */
export interface FeedEntries {
  readonly entries: readonly FeedEntry[]
  /** The last sequence that was read. The next read begins after it. */
  readonly next: number
  /** Whether the end of the feed was reached. */
  readonly ended: boolean
}

/** An event of the feed, as it is sent to endpoints: with the content that the entry has now. */
export interface FeedEntry {
  readonly sequence: number
  readonly parcelId: number
  /** All identifiers of the parcel. */
  readonly identifiers: readonly string[]
  readonly entry: Entry
  readonly payload: Payload
  /** Null: it reports no backfill. */
  readonly backfill: Backfill | null
  /** The endpoints to which the entry was sent in an earlier event. They do not get this event. */
  readonly earlierAudience: Audience
}

/** An event of the feed, as it is stored. */
export interface FeedEvent {
  readonly sequence: number
  readonly kind: FeedKind
  readonly parcelId: number
  /**
   * Identifies the subject of the event. If the event goes to endpoints: the sequence of the sighting that it reports. For another event
   * about an entry: the sequence of any sighting of the entry. For an event about the whole parcel: the event's own sequence. For `join`:
   * the id of the parcel that was joined.
   */
  readonly entry: number
  /** A reference to the body, and the endpoints to which the entry was already sent; null: the event does not go to endpoints. */
  readonly payloadRef: (PayloadRef & { readonly earlierAudience: Audience }) | null
}

/** The event of a parcel that retention has deleted. It does not go to endpoints. */
export function retiredEvent(sequence: number, parcelId: number): FeedEvent {
  return { sequence, kind: 'retired', parcelId, entry: sequence, payloadRef: null }
}

/** The event of an erased parcel. It does not go to endpoints. */
export function erasedEvent(sequence: number, parcelId: number): FeedEvent {
  return { sequence, kind: 'erased', parcelId, entry: sequence, payloadRef: null }
}

/** A stored reference to what a body is made from: a push as received, or an entry from which the relay composes an event. */
export type PayloadRef =
  | { readonly kind: 'push'; readonly inboxId: number }
  | { readonly kind: 'composed'; readonly backfill: Backfill | null }

/** The subject of an event at the time of sending. */
export interface PayloadSubject {
  readonly entry: Entry
  /** The parcel that holds the entry now. */
  readonly parcel: FeedParcel
  /** Whether the bytes of the event's push are still kept. */
  readonly hasBody: boolean
}

/** Decides what a body is made from when it is sent. If retention has deleted the bytes of the push, the event is composed. */
export function payloadOf(ref: PayloadRef, { entry, parcel, hasBody }: PayloadSubject): Payload {
  const { trackingIds, identifiers, distributionType } = parcel
  if (ref.kind === 'composed' || !hasBody)
    return { kind: 'composed', trackingIds: trackingIds.length === 0 ? identifiers.slice(0, 1) : trackingIds, distributionType }
  const said = entry.members.find(({ sighting }) => sighting.source === 'push')?.sighting.distributionType
  return { kind: 'push', inboxId: ref.inboxId, distributionType: said || distributionType }
}

/** Consecutive events of the feed, as the API shows them to readers. */
export interface FeedSlice {
  readonly items: readonly FeedItem[]
  /** The last sequence that was read. If its parcel has been deleted, `items` has no item with this sequence. */
  readonly next: number
  /** Whether the end of the feed was reached at that moment. */
  readonly ended: boolean
  /** Events up to this sequence were deleted; 0: no event was deleted. */
  readonly prunedTo: number
  readonly last: number
}
