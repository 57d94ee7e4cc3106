import { type ErasedCounts, FIRST_MENTION, isOfPushes, type MentionPlace } from './erasure.rules.ts'
import type { ErasureWrites } from './erasure-ports.ts'
import type { SearchedMentions, SearchedPage } from './mentions.rows.ts'

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
