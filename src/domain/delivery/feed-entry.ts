import type { Audience } from '../history/audience.ts'
import type { Entry } from '../history/history.ts'
import type { FeedItem } from './feed-event.ts'

/** What endpoints are sent for an entry: the bytes of a push, or an event that is composed (DOMAIN 7.1). */
export type Payload =
  | { readonly kind: 'push'; readonly inboxId: number; readonly distributionType: string }
  | { readonly kind: 'composed'; readonly trackingIds: readonly string[]; readonly distributionType: string }

export interface FeedEntries {
  readonly entries: readonly FeedEntry[]
  /** The last sequence that was looked at. */
  readonly next: number
  /** Whether there is no more. */
  readonly ended: boolean
}

/** An event of the feed that endpoints are sent, told from what is known now. */
export interface FeedEntry {
  readonly sequence: number
  readonly parcelId: number
  readonly entry: Entry
  readonly payload: Payload
  readonly backfill: boolean
  /** Whom the entry had been told of before: they are not sent it. */
  readonly earlierAudience: Audience
}

export interface FeedEvent {
  readonly sequence: number
  readonly kind: 'entry' | 'update' | 'united' | 'split' | 'join'
  readonly parcelId: number
  /**
   * The sequence of a sighting of the entry it is about, of the one that is told of if endpoints are sent it; that of the event itself when it
   * is about the parcel; for `join` the parcel that is no more.
   */
  readonly entry: number
  /** What endpoints are sent for it, and who is not because the entry was told of before; null: nothing. */
  readonly carries: (PayloadRef & { readonly earlierAudience: Audience }) | null
}

/** A push as it was received, or an event composed of an entry. */
export type PayloadRef = { readonly kind: 'push'; readonly inboxId: number } | { readonly kind: 'composed'; readonly backfill: boolean }

export interface FeedSlice {
  readonly items: readonly FeedItem[]
  /** The last sequence that was looked at: that of parcels erased since included. */
  readonly next: number
  /** Whether there was no more at that moment. */
  readonly ended: boolean
  /** Events up to this sequence are gone; 0: none are. */
  readonly prunedTo: number
  /** The last sequence that was given to anything. */
  readonly last: number
}
