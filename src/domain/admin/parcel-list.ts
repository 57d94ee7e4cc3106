import type { Entry } from '../history/history.ts'
import type { ParcelState } from '../history/parcel-state.ts'

export interface StoreCounts {
  readonly parcels: number
  readonly watched: number
  readonly overdue: number
  readonly quarantined: number
}

/**
 * Which parcels, and where to go on. Those with an identifier that starts with `prefix` come by identifier; others by their next check, the
 * most overdue first, then those without one by the reason they stopped.
 */
export interface ParcelQuery {
  readonly prefix: string | null
  /** The latest status. */
  readonly status: string | null
  readonly stopped: ParcelState['stopped']
  readonly after: ParcelCursor | null
  readonly limit: number
}

/** The place after one parcel in the order of a list. */
export type ParcelCursor =
  | { readonly by: 'identifier'; readonly value: string }
  | { readonly by: 'next'; readonly atMs: number; readonly parcelId: number }
  | { readonly by: 'stopped'; readonly reason: NonNullable<ParcelState['stopped']>; readonly parcelId: number }

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
  /** When the carrier last said that it does not know it; null: never. */
  readonly refusedAtMs: number | null
}

export interface InspectedParcel extends ListedParcel {
  /** Newest first. */
  readonly entries: readonly Entry[]
}
