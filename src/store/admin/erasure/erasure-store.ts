import type { ErasedCounts, ErasedIdentifier, ErasureTrace, MentionPlace, NamedEndpoint } from '../../../domain/admin/erasure.ts'
import type { IdentifierState } from '../../../domain/history/parcel-state.ts'
import type { NameSearch } from '../../../domain/names-in-text.ts'

/** Selects a page of records that may name an identifier but are not parcels, such as pushes in quarantine. */
export interface SearchedPage {
  readonly place: MentionPlace
  readonly limit: number
}

export interface SearchedMentions {
  /** How many pushes without a parcel were removed because they name one of the identifiers. */
  readonly pushes: number
  /** How many other records named one of the identifiers. The identifier was removed from them. */
  readonly mentions: number
  /** How many records stay as they are although they may name an identifier: they cannot be read, or have it as a part of a longer word. */
  readonly unreadable: number
  /** The identifiers that the records named. */
  readonly found: readonly string[]
  /** Where the next page begins; null: this was the last page. */
  readonly next: MentionPlace | null
}

export interface ErasedParcels {
  /** One result for each identifier of the request, in the same order. */
  readonly results: readonly ErasedIdentifier[]
  readonly counts: Omit<ErasedCounts, 'mentions'>
  /** The endpoints that were sent something about the parcels. */
  readonly endpoints: readonly NamedEndpoint[]
  /** All identifiers of the erased parcels, with the ids of the parcels. */
  readonly names: readonly { readonly value: string; readonly parcelId: number }[]
  readonly store: Pick<ErasureTrace, 'lineage' | 'restoredAtMs'>
}

export interface ErasureTx {
  /**
   * Deletes parcels that the transaction holds, with all their data, and adds an `erased` event for each to the feed. `identifiers`: what was
   * asked for, also identifiers without a parcel, so that questions to the carrier about them are forgotten too.
   */
  eraseParcels(parcelIds: readonly number[], identifiers: readonly string[]): Promise<Omit<ErasedParcels, 'results' | 'store'>>
  /** Finds identifiers. Until the transaction ends, nobody else changes their parcels and what identifiers these have. */
  holdParcelsOf(identifiers: readonly string[]): Promise<readonly IdentifierState[]>
  searchMentions(request: SearchedPage & { readonly search: NameSearch }): Promise<SearchedMentions>
  removeUnfinished(identifiers: readonly string[]): void
  /** Returns the encrypted key of the tombstones; null: no key exists. */
  loadTombstoneKey(): Promise<string | null>
  saveTombstoneKey(sealed: string): Promise<void>
}
