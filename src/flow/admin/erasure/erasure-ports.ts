import type { ErasedCounts, ErasedIdentifier, MentionPlace, NamedEndpoint, StorageState } from '../../../domain/admin/erasure.ts'
import type { Audited } from '../../../domain/admin/operator-action.ts'
import type { ErasureRules } from '../../../domain/history/erased.ts'

/** Asks for a page of records that are not parcels but may name one. */
export interface SearchRequest {
  readonly identifiers: readonly string[]
  readonly place: MentionPlace
  readonly limit: number
}

/** The result of searching such a page. */
export interface SearchedMentions {
  /** How many pushes without a parcel were removed because they name one of the identifiers. */
  readonly pushes: number
  /** How many other records named one of the identifiers. It was removed from them. */
  readonly mentions: number
  /** How many pushes could not be unpacked, so nobody knows which identifiers they name. */
  readonly unreadable: number
  /** The identifiers that the removed pushes named. */
  readonly found: readonly string[]
  /** Where the next page begins; null: nothing is left to search. */
  readonly next: MentionPlace | null
}

/** The result of an erasure in one transaction. */
export interface ErasedParcels {
  /** One result for each identifier of the request, in the same order. */
  readonly results: readonly ErasedIdentifier[]
  readonly counts: Omit<ErasedCounts, 'mentions'>
  /** The endpoints that were sent something about the parcels. */
  readonly endpoints: readonly NamedEndpoint[]
  /** All identifiers of the erased parcels, with the ids of the parcels. */
  readonly names: readonly { readonly value: string; readonly parcelId: number }[]
}

/** The verbs of an erasure; see `WriteSide`. Times are epoch milliseconds. */
export interface ErasureWrites {
  /** The sealed key of the tombstones (null: none was made), and whether there are tombstones. */
  tombstoneKey(): Promise<{ readonly sealed: string | null; readonly isUsed: boolean }>
  /** Stores a sealed key if the stored one is `before` (null: none is stored). Returns the key that is stored afterwards. */
  keepTombstoneKey(request: { readonly before: string | null; readonly sealed: string }): Promise<string>
  /** Uses this key for tombstones from now on. */
  useTombstoneKey(key: Uint8Array): Promise<void>
  /** Changes the time after which an erased identifier may belong to a new parcel. Takes effect with the next batch. */
  adjustErasure(rules: ErasureRules): Promise<void>
  /**
   * Erases the parcels of identifiers in one transaction, and leaves tombstones. `bury`: an identifier without a parcel gets one too.
   * `dryRun`: only reports what would be erased.
   */
  eraseParcels(
    request: Audited & {
      readonly identifiers: readonly string[]
      readonly nowMs: number
      readonly bury: boolean
      readonly dryRun: boolean
    },
  ): Promise<ErasedParcels>
  /** Removes what a page of other records says about identifiers. `dryRun`: only reports it. */
  searchMentions(request: SearchRequest & { readonly dryRun: boolean }): Promise<SearchedMentions>
  /** Removes erased data from the files of the store, as far as the engine can. */
  cleanStorage(): Promise<StorageState>
  /** If the store was restored: how many identifiers were erased after it was backed up, and the sealed key of their tombstones. */
  missedErasures(): Promise<{ readonly sealedKey: string | null; readonly count: number }>
  /**
   * Erases again what was erased after the store was backed up: the parcels among a page of identifiers above `after`. `next` null: this
   * was the last page. `names`: the identifiers of the erased parcels. `dryRun`: only finds them.
   */
  repeatErasures(page: {
    readonly after: string
    readonly dryRun: boolean
  }): Promise<{ readonly next: string | null; readonly names: readonly string[] }>
  /** Stores the tombstones of the repeated erasures. From then on none counts as missed. */
  settleErasures(): Promise<void>
  /** Whether an identifier belongs to an erased parcel. Then the carrier is not asked about it. */
  isErased(request: { readonly identifier: string; readonly nowMs: number }): Promise<boolean>
}

/** The store as an erasure uses it inside one transaction; see `WriteTx`. */
export interface ErasureTx {
  /** Deletes parcels that are held, with everything that belongs to them, and adds `erased` to the feed for each. */
  eraseParcels(parcelIds: readonly number[]): Promise<Omit<ErasedParcels, 'results'>>
  searchMentions(request: SearchRequest): Promise<SearchedMentions>
  /** The sealed key of the tombstones; null: none was made. */
  loadTombstoneKey(): Promise<string | null>
  saveTombstoneKey(sealed: string): Promise<void>
  hasTombstones(): Promise<boolean>
  /** Identifiers above `after`, in the order of their bytes. */
  listIdentifiers(page: {
    readonly after: string
    readonly limit: number
  }): Promise<readonly { readonly value: string; readonly parcelId: number }[]>
}
