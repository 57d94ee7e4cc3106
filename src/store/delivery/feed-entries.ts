import type { FeedEntries, FeedEntry, Payload } from '../../domain/delivery/feed-entry.ts'
import type { Entry } from '../../domain/history/history.ts'
import { decodeAudience, decodePayloadRef } from '../codec.ts'
import type { Session } from '../engine.ts'
import type { Contents } from '../history/contents.ts'
import { statement } from '../statement.ts'
import { feedParcel, survivorOf } from './read-feed.ts'

const eventsAfter = statement<{ after: number; limit: number }>()((db, p) =>
  db.selectFrom('feed').selectAll().where('sequence', '>', p.after).orderBy('sequence').limit(p.limit),
)
const keptBody = statement<{ id: number }>()((db, p) =>
  db.selectFrom('inbox').select('id').where('id', '=', p.id).where('body', 'is not', null),
)

type Parcel = Awaited<ReturnType<typeof feedParcel>>

/** See `DeliveryTx.readFeedEntries`. Entries have their current content, but the payload of the original event. */
export async function readFeedEntries(
  session: Session,
  contents: Contents,
  request: { readonly after: number; readonly limit: number },
): Promise<FeedEntries> {
  const rows = await session.all(eventsAfter, request)
  const parcels = new Map<number, Parcel>()
  const entries: FeedEntry[] = []
  for (const row of rows) {
    if (row.carries === null) continue
    const parcelId = await survivorOf(session, row.parcel_id, row.sequence)
    const parcel = parcels.get(parcelId) ?? (await feedParcel(session, contents, parcelId))
    parcels.set(parcelId, parcel)
    const entry = parcel?.entries.find(({ members }) => members.some(({ sequence }) => sequence === row.entry))
    // The parcel or the entry was erased since.
    if (parcel === null || entry === undefined) continue
    const carries = decodePayloadRef(row.carries)
    const payload = carries.kind === 'push' ? await pushed(session, carries.inboxId, entry, parcel) : composed(parcel)
    const backfill = carries.kind === 'composed' && carries.backfill
    entries.push({ sequence: row.sequence, parcelId, entry, payload, backfill, earlierAudience: decodeAudience(row.told_before) })
  }
  return { entries, next: rows.at(-1)?.sequence ?? request.after, ended: rows.length < request.limit }
}

async function pushed(session: Session, inboxId: number, entry: Entry, parcel: NonNullable<Parcel>): Promise<Payload> {
  // If retention has deleted the bytes, endpoints get a composed event.
  if ((await session.all(keptBody, { id: inboxId })).length === 0) return composed(parcel)
  const said = entry.members.find(({ sighting }) => sighting.source === 'push')?.sighting.distributionType
  return { kind: 'push', inboxId, distributionType: said || parcel.distributionType }
}

function composed({ trackingIds, identifiers, distributionType }: NonNullable<Parcel>): Payload {
  return { kind: 'composed', trackingIds: trackingIds.length === 0 ? identifiers.slice(0, 1) : trackingIds, distributionType }
}
