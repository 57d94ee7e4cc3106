import { sql } from 'kysely'
import type { FeedSlice } from '../../domain/delivery/feed-entry.ts'
import type { FeedItem, FeedParcel } from '../../domain/delivery/feed-event.ts'
import { decodeFeedKind, decodeJoined } from '../codec.ts'
import type { Session } from '../engine.ts'
import type { Contents } from '../history/contents.ts'
import { viewParcel } from '../history/parcel-view.ts'
import { findParcel } from '../history/parcels.ts'
import { statement } from '../statement.ts'
import { prunedTo } from './feed.ts'

const eventsAfter = statement<{ after: number; limit: number }>()((db, p) =>
  db.selectFrom('feed').selectAll().where('sequence', '>', p.after).orderBy('sequence').limit(p.limit),
)
// The kind is a literal, because the planner uses a partial index only if the query repeats its condition.
const nextJoin = statement<{ parcelId: number; after: number }>()((db, p) =>
  db
    .selectFrom('feed')
    .select(['sequence', 'parcel_id'])
    .where('kind', '=', sql.lit(4))
    .where('entry', '=', p.parcelId)
    .where('sequence', '>', p.after)
    .orderBy('sequence')
    .limit(1),
)
const auditOf = statement<{ sequence: number }>()((db, p) => db.selectFrom('audit').select('detail').where('sequence', '=', p.sequence))

interface FeedRequest {
  readonly after: number
  readonly limit: number
}

/** Reads the events after a sequence, with their parcels' current content. The caller adds the last sequence, which engines store differently. */
export async function readFeed(session: Session, contents: Contents, request: FeedRequest): Promise<Omit<FeedSlice, 'last'>> {
  const rows = await session.all(eventsAfter, request)
  const parcels = new Map<number, FeedParcel | null>()
  const items: FeedItem[] = []
  for (const row of rows) {
    const parcelId = await survivorOf(session, row.parcel_id, row.sequence)
    const parcel = parcels.get(parcelId) ?? (await feedParcel(session, contents, parcelId))
    parcels.set(parcelId, parcel)
    // The parcel was erased since; its events are left out.
    if (parcel === null) continue
    const kind = decodeFeedKind(row.kind)
    const entry = kind === 'join' ? undefined : parcel.entries.find(({ members }) => members.some((kept) => kept.sequence === row.entry))
    const joined = kind === 'join' ? { parcelId: row.entry, identifiers: await joinedIdentifiers(session, row.sequence) } : null
    items.push({ sequence: row.sequence, kind, parcel, entry: entry ?? null, joined })
  }
  return {
    items,
    next: rows.at(-1)?.sequence ?? request.after,
    ended: rows.length < request.limit,
    prunedTo: await prunedTo(session),
  }
}

/** Follows joins to the parcel that now holds another's history. Only joins after `sequence` count, because early versions reused parcel ids. */
export async function survivorOf(session: Session, parcelId: number, sequence: number): Promise<number> {
  let [id, after] = [parcelId, sequence]
  for (;;) {
    const [join] = await session.all(nextJoin, { parcelId: id, after })
    if (join === undefined) return id
    id = join.parcel_id
    after = join.sequence
  }
}

export async function feedParcel(session: Session, contents: Contents, parcelId: number): Promise<FeedParcel | null> {
  if ((await findParcel(session, parcelId)) === null) return null
  return { parcelId, ...(await viewParcel(session, contents, parcelId)) }
}

async function joinedIdentifiers(session: Session, sequence: number): Promise<readonly string[]> {
  const [row] = await session.all(auditOf, { sequence })
  return row === undefined ? [] : decodeJoined(row.detail)
}
