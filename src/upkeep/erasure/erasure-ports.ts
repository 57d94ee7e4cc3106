import type { Audited } from '../../core/domain/admin/operator-action.ts'
import type { ErasureRules, StorageState } from '../../core/domain/history/erased.ts'
import type { ErasedParcels, SearchedMentions, SearchedPage } from './erasure.rows.ts'
import { type ErasedCounts, FIRST_MENTION, isOfPushes, type MentionPlace } from './erasure.rules.ts'

/** The part of `WriteSide` that erases parcels. Times are epoch milliseconds. */
export interface ErasureWrites {
  /** Returns the encrypted key of the tombstones (null: no key exists), and whether tombstones use it. */
  tombstoneKey(): Promise<{ readonly sealed: string | null; readonly isUsed: boolean }>
  /** Stores an encrypted key if the stored key is still `before` (null: no key). Returns the key that is stored afterwards. */
  keepTombstoneKey(request: { readonly before: string | null; readonly sealed: string }): Promise<string>
  useTombstoneKey(key: Uint8Array): Promise<void>
  /** Changes the time after which an erased identifier may belong to a new parcel. */
  adjustErasure(rules: ErasureRules): Promise<void>
  /** Returns the identifiers that a parcel has, that were erased before, or whose erasure has not ended. */
  findErasable(request: { readonly identifiers: readonly string[] }): Promise<readonly string[]>
  /**
   * Erases the parcels of identifiers in one transaction, and stores tombstones, also of identifiers without a parcel. Notes all of their
   * identifiers as unfinished. The order in the audit trail gets the counts and the marks. `dryRun`: only reports what would be erased.
   */
  eraseParcels(
    request: Audited & { readonly identifiers: readonly string[]; readonly nowMs: number; readonly dryRun: boolean },
  ): Promise<ErasedParcels>
  /** Removes identifiers from a page of records that are not parcels. `dryRun`: only reports what would be removed. */
  searchMentions(request: SearchedPage & { readonly identifiers: readonly string[]; readonly dryRun: boolean }): Promise<SearchedMentions>
  /** Lists the identifiers of erased parcels for which not all records were searched, perhaps because the relay was killed. */
  unfinishedErasures(): Promise<readonly string[]>
  /**
   * Forgets unfinished identifiers, after all records were searched for them. `isLate`: some may have named parcels that had been erased before.
   * `unreadable`: how many records nobody could read.
   */
  endErasures(request: { readonly identifiers: readonly string[]; readonly isLate: boolean; readonly unreadable: number }): Promise<void>
  /** Removes erased data from the files of the store, as far as the database engine can do this. */
  cleanStorage(): Promise<StorageState>
  /** After a restore: returns how many identifiers were erased since the backup, and the encrypted key of their tombstones. */
  missedErasures(): Promise<{ readonly sealedKey: string | null; readonly count: number }>
  /** After a restore: like `searchMentions`, for all identifiers that were erased since the backup. */
  searchMissed(page: SearchedPage): Promise<SearchedMentions>
  /**
   * After a restore: erases again the parcels that were erased since the backup. Each call looks at a page of identifiers above `after`.
   * `next` null: this was the last page. `names`: the identifiers of the erased parcels.
   */
  repeatErasures(page: { readonly after: string }): Promise<{ readonly next: string | null; readonly names: readonly string[] }>
  /**
   * Stores the tombstones of the repeated erasures, and adds to the audit trail that they were repeated. After that, these erasures are not
   * repeated again. `identifiers`: how many were erased again.
   */
  settleErasures(request: { readonly nowMs: number; readonly identifiers: number }): Promise<void>
}

/** How many records one transaction searches. */
const SEARCHED = 200

export interface SearchedRecords {
  readonly counts: Pick<ErasedCounts, 'pushes' | 'mentions'>
  readonly unreadable: number
  readonly found: ReadonlySet<string>
}

/** Searches all records that are not parcels but may name one, in transactions of limited size. `onlyPushes`: only the pushes without a parcel. */
export async function searchRecords(
  look: (page: SearchedPage) => Promise<SearchedMentions>,
  { onlyPushes = false } = {},
): Promise<SearchedRecords> {
  let [pushes, mentions, unreadable] = [0, 0, 0]
  const found = new Set<string>()
  for (let place: MentionPlace | null = FIRST_MENTION; place !== null && (!onlyPushes || isOfPushes(place.source)); ) {
    const searched = await look({ place, limit: SEARCHED })
    pushes += searched.pushes
    mentions += searched.mentions
    unreadable += searched.unreadable
    for (const value of searched.found) found.add(value)
    place = searched.next
  }
  return { counts: { pushes, mentions }, unreadable, found }
}

/** Ends the erasures that a kill has interrupted after their parcels were gone. Returns how many identifiers they had. */
export async function finishErasures(write: Pick<ErasureWrites, 'unfinishedErasures' | 'searchMentions' | 'endErasures'>): Promise<number> {
  const identifiers = await write.unfinishedErasures()
  if (identifiers.length === 0) return 0
  const { unreadable } = await searchRecords((page) => write.searchMentions({ ...page, identifiers, dryRun: false }))
  await write.endErasures({ identifiers, isLate: true, unreadable })
  return identifiers.length
}
