import type { Entry } from '../history/history.ts'
import type { ParcelState } from '../history/parcel-state.ts'

/** `overdue`: watched parcels whose poll is due. `unknown`: parcels that are not polled any more, because the carrier knows none of their identifiers. */
export interface StoreCounts {
  readonly parcels: number
  readonly watched: number
  readonly overdue: number
  readonly unknown: number
  readonly quarantined: number
}

/**
 * Selects a page of parcels. With `prefix`: the parcels with an identifier that begins with `prefix`, sorted by identifier. Without it: first the
 * parcels with a next poll, the most overdue first. Then the parcels that are no longer polled, sorted by the reason.
 */
export interface ParcelQuery {
  readonly prefix: string | null
  /** The latest status; null: any. */
  readonly status: string | null
  readonly stopped: ParcelState['stopped']
  /** Whether to select only parcels of which the carrier knew no identifier when it was last asked. Absent: all parcels. */
  readonly isUnknown?: boolean
  readonly after: ParcelCursor | null
  readonly limit: number
}

export type ParcelFilter = Pick<ParcelQuery, 'prefix' | 'status' | 'stopped'>

/** How many parcels a filter matches. `more`: only the first of them were counted, so there may be more. */
export interface FilteredCount {
  readonly count: number
  readonly more: boolean
}

/** Where a page of a list of parcels begins: after this parcel, in the order of the list. */
export type ParcelCursor =
  | { readonly by: 'identifier'; readonly value: string }
  | { readonly by: 'next'; readonly atMs: number; readonly parcelId: number }
  | { readonly by: 'stopped'; readonly reason: NonNullable<ParcelState['stopped']>; readonly parcelId: number }

/** `next` null: this is the last page. */
export interface ParcelPage {
  readonly parcels: readonly ListedParcel[]
  readonly next: ParcelCursor | null
}

export interface ListedParcel {
  readonly state: ParcelState
  readonly identifiers: readonly InspectedIdentifier[]
}

export interface InspectedIdentifier {
  readonly value: string
  readonly isTrackingId: boolean
  /** When the carrier last answered that it does not know the identifier, epoch milliseconds; null: never. */
  readonly refusedAtMs: number | null
}

export interface InspectedParcel extends ListedParcel {
  /** The newest first. */
  readonly entries: readonly Entry[]
  /** The kind of delivery, in the word of the carrier; empty: not known. */
  readonly distributionType: string
}
