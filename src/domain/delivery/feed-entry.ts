import type { Audience } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import type { FeedItem, FeedKind, FeedParcel } from './feed-event.ts'

/** The body that endpoints are sent for an entry: the bytes of a push, or a composed event (DOMAIN 7.1). */
export type Payload =
  | { readonly kind: 'push'; readonly inboxId: number; readonly distributionType: string }
  | { readonly kind: 'composed'; readonly trackingIds: readonly string[]; readonly distributionType: string }

/** A part of the feed, as it is sent to endpoints. */
export interface FeedEntries {
  readonly entries: readonly FeedEntry[]
  /** The last sequence that was read. */
  readonly next: number
  /** Whether the end of the feed was reached. */
  readonly ended: boolean
}

/** An event of the feed for endpoints. It has the entry's present content. */
export interface FeedEntry {
  readonly sequence: number
  readonly parcelId: number
  /** All identifiers of the parcel. */
  readonly identifiers: readonly string[]
  readonly entry: Entry
  readonly payload: Payload
  readonly backfill: boolean
  /** The endpoints that were sent the entry before. They are not sent this event. */
  readonly earlierAudience: Audience
}

/** An event of the feed, as it is stored. */
export interface FeedEvent {
  readonly sequence: number
  readonly kind: FeedKind
  readonly parcelId: number
  /**
   * Identifies the subject of the event. If endpoints are sent it: the sequence of the sighting that it reports. Otherwise: the sequence of
   * any sighting of its entry. For an event about the parcel as a whole: its own sequence. For `join`: the id of the parcel that was
   * joined.
   */
  readonly entry: number
  /** A reference to the body for endpoints, and the endpoints that were sent the entry before; null: endpoints are sent nothing. */
  readonly payloadRef: (PayloadRef & { readonly earlierAudience: Audience }) | null
}

/** The event that reports that a parcel was retired. Endpoints are not sent it. */
export function retiredEvent(sequence: number, parcelId: number): FeedEvent {
  return { sequence, kind: 'retired', parcelId, entry: sequence, payloadRef: null }
}

/** The event that reports that a parcel was erased. Endpoints are not sent it. */
export function erasedEvent(sequence: number, parcelId: number): FeedEvent {
  return { sequence, kind: 'erased', parcelId, entry: sequence, payloadRef: null }
}

/** A reference to a body for endpoints: a push as received, or an event composed from an entry. */
export type PayloadRef = { readonly kind: 'push'; readonly inboxId: number } | { readonly kind: 'composed'; readonly backfill: boolean }

/** The subject of an event at the time of sending. */
export interface PayloadSubject {
  readonly entry: Entry
  /** The parcel that holds its history now. */
  readonly parcel: FeedParcel
  /** Whether the bytes of the event's push are still kept. */
  readonly hasBody: boolean
}

/** The body for endpoints at the time of sending. If retention has deleted the bytes of the push, they get a composed event. */
export function payloadOf(ref: PayloadRef, { entry, parcel, hasBody }: PayloadSubject): Payload {
  const { trackingIds, identifiers, distributionType } = parcel
  if (ref.kind === 'composed' || !hasBody)
    return { kind: 'composed', trackingIds: trackingIds.length === 0 ? identifiers.slice(0, 1) : trackingIds, distributionType }
  const said = entry.members.find(({ sighting }) => sighting.source === 'push')?.sighting.distributionType
  return { kind: 'push', inboxId: ref.inboxId, distributionType: said || distributionType }
}

/** A part of the feed, as it is shown to readers. */
export interface FeedSlice {
  readonly items: readonly FeedItem[]
  /** The last sequence that was read. It may belong to a parcel that was deleted since. */
  readonly next: number
  /** Whether the end of the feed was reached at that moment. */
  readonly ended: boolean
  /** Events up to this sequence were deleted; 0: none were. */
  readonly prunedTo: number
  readonly last: number
}
