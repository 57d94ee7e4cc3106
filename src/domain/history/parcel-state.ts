import type { Entry } from './history.ts'
import type { KeptSighting } from './sightings.ts'

/** What is known of a parcel apart from its sightings. Times are epoch milliseconds. */
export interface ParcelState {
  readonly parcelId: number
  /** Since when it is polled for; null: it is not. */
  readonly watchedAtMs: number | null
  /** The earliest `eventTime` a push brought; null: none did. */
  readonly firstPushedAtMs: number | null
  /** The last push, app's question or order to watch. */
  readonly activatedAtMs: number
  readonly entryCount: number
  /** Of the first entry of its history. */
  readonly latest: { readonly status: string; readonly atMs: number } | null
  /** When the carrier was last heard about it, by push or poll. */
  readonly lastSeenAtMs: number | null
  readonly checkedAtMs: number | null
  readonly failures: number
  readonly nextPollAtMs: number | null
  readonly stopped: 'delivered' | 'stale' | 'unknown' | 'unwatched' | null
  /** It reached the most entries a parcel may hold. */
  readonly full: boolean
}

/** A parcel that nothing is known of yet. */
export function newParcel(parcelId: number, nowMs: number): ParcelState {
  return {
    parcelId,
    watchedAtMs: null,
    firstPushedAtMs: null,
    activatedAtMs: nowMs,
    entryCount: 0,
    latest: null,
    lastSeenAtMs: null,
    checkedAtMs: null,
    failures: 0,
    nextPollAtMs: null,
    stopped: null,
    full: false,
  }
}

/** A parcel that is joined with others, and all that was sighted of it. */
export interface JoinedParcel {
  readonly state: ParcelState
  readonly sightings: readonly KeptSighting[]
}

/** Parcels that proved to be one (DOMAIN 1.4). */
export interface ParcelJoin {
  /** The one that goes on, as it was. */
  readonly survivor: JoinedParcel
  /** Those that are no more, in the order in which they are joined to it, each with the sequence of that. */
  readonly others: readonly (JoinedParcel & { readonly sequence: number })[]
  /** The survivor as it is from now on. */
  readonly parcel: ParcelState
  /** The sightings that more than one of them holds, as they are kept from now on. */
  readonly shared: readonly KeptSighting[]
  readonly nowMs: number
}

export interface IdentifierState {
  readonly value: string
  readonly parcelId: number
  /** Whether the carrier named it in `trackingIds`; if not, somebody asked for it. */
  readonly isTrackingId: boolean
}

/** Everything an answer about a parcel is made from. */
export interface ParcelView {
  readonly parcelId: number
  /** Newest first (DOMAIN 3). */
  readonly entries: readonly Entry[]
  readonly trackingIds: readonly string[]
  readonly distributionType: string
  /** Unknown members of the last-asked answer, re-served after the known ones. */
  readonly extra: readonly (readonly [name: string, json: string])[]
  /** When the carrier was last heard about this parcel, by push or poll; null: never. */
  readonly lastSeenAtMs: number | null
  readonly watched: boolean
  /** Languages that were fetched and for which no newer entry has come since: not to be fetched again (DOMAIN 4.2). */
  readonly languagesAsked: readonly string[]
}
