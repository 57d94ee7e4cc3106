import type { FeedItem, FeedParcel, FeedSlice } from '../../domain/delivery/feed-entry.ts'
import { decodeFeedKind, decodeJoined } from '../codec.ts'
import type { Session } from '../engine.ts'
import type { Contents } from '../history/contents.ts'
import { viewParcel } from '../history/parcel-view.ts'
import { findParcel } from '../history/parcels.ts'
import { statement } from '../statement.ts'
import { prunedTo } from './feed.ts'
import { survivorOf } from './survivors.ts'

/** Selects the events after a sequence, each with the parcel that holds its history now. */
export const eventsAfter = statement<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom('feed')
    .selectAll()
    .select((row) => survivorOf(row.ref('feed.parcel_id'), row.ref('feed.sequence')).as('holder'))
    .where('sequence', '>', p.after)
    .orderBy('sequence')
    .limit(p.limit),
)
const auditOf = statement<{ sequences: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('audit').select(['sequence', 'detail']).where('sequence', 'in', oneOf(p.sequences)),
)

export interface FeedRequest {
  readonly after: number
  readonly limit: number
}

/**
 * Reads the events after a sequence, with the current content of all their parcels. The caller adds the last sequence of the feed, because
 * each engine stores it in its own way.
 */
export async function readFeed(session: Session, contents: Contents, request: FeedRequest): Promise<Omit<FeedSlice, 'last'>> {
  const rows = await session.all(eventsAfter, request)
  const holders = [...new Set(rows.map(({ holder }) => holder))]
  const joins = rows.filter(({ kind }) => decodeFeedKind(kind) === 'join').map(({ sequence }) => sequence)
  const [found, identifiers] = await Promise.all([
    Promise.all(holders.map((parcelId) => feedParcel(session, contents, parcelId))),
    joins.length === 0 ? new Map<number, readonly string[]>() : joinedIdentifiers(session, joins),
  ])
  const parcels = new Map(holders.map((parcelId, at) => [parcelId, found[at] ?? null]))
  const items: FeedItem[] = []
  for (const row of rows) {
    const kind = decodeFeedKind(row.kind)
    if (kind === 'retired' || kind === 'erased') {
      items.push({ sequence: row.sequence, kind, parcelId: row.parcel_id })
      continue
    }
    const parcel = parcels.get(row.holder) ?? null
    // Leave out the event, because its parcel has been erased.
    if (parcel === null) continue
    const entry = kind === 'join' ? undefined : parcel.entries.find(({ members }) => members.some((kept) => kept.sequence === row.entry))
    const joined = kind === 'join' ? { parcelId: row.entry, identifiers: identifiers.get(row.sequence) ?? [] } : null
    items.push({ sequence: row.sequence, kind, parcel, entry: entry ?? null, joined })
  }
  return {
    items,
    next: rows.at(-1)?.sequence ?? request.after,
    ended: rows.length < request.limit,
    prunedTo: await prunedTo(session),
  }
}

export async function feedParcel(session: Session, contents: Contents, parcelId: number): Promise<FeedParcel | null> {
  if ((await findParcel(session, parcelId)) === null) return null
  return { parcelId, ...(await viewParcel(session, contents, parcelId)) }
}

async function joinedIdentifiers(session: Session, sequences: readonly number[]): Promise<ReadonlyMap<number, readonly string[]>> {
  const rows = await session.all(auditOf, { sequences })
  return new Map(rows.map(({ sequence, detail }) => [sequence, decodeJoined(detail)]))
}
