import type { Selectable } from 'kysely'
import type { FeedEntries, FeedEntry, Payload } from '../../domain/delivery/feed-entry.ts'
import type { FeedParcel } from '../../domain/delivery/feed-event.ts'
import type { Entry } from '../../domain/history/history.ts'
import { decodeAudience, decodePayloadRef } from '../codec.ts'
import type { Session } from '../engine.ts'
import type { Contents } from '../history/contents.ts'
import type { Tables } from '../schema.ts'
import { statement } from '../statement.ts'
import { feedParcel } from './read-feed.ts'
import { survivorOf } from './survivors.ts'

const eventsAfter = statement<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom('feed')
    .selectAll()
    .select((row) => survivorOf(row.ref('feed.parcel_id'), row.ref('feed.sequence')).as('holder'))
    .where('sequence', '>', p.after)
    .orderBy('sequence')
    .limit(p.limit),
)
const keptBody = statement<{ id: number }>()((db, p) =>
  db.selectFrom('inbox').select('id').where('id', '=', p.id).where('body', 'is not', null),
)

/** An event of the feed, and what it was read with. */
export interface FeedRow {
  readonly row: Pick<Selectable<Tables['feed']>, 'sequence' | 'entry' | 'carries' | 'told_before'>
  /** The parcel that holds its history now; null: it was erased. */
  readonly parcel: FeedParcel | null
  /** Whether the bytes of the push that brought it are still kept. */
  readonly hasBody: boolean
}

/**
 * See `DeliveryTx.readFeedEntries`. Entries have their current content, but the payload of the original event. It reads row by row: right only where
 * nobody else commits meanwhile, or an event whose parcel is joined between two reads would be taken for erased.
 */
export async function readFeedEntries(
  session: Session,
  contents: Contents,
  request: { readonly after: number; readonly limit: number },
): Promise<FeedEntries> {
  const rows = await session.all(eventsAfter, request)
  const parcels = new Map<number, FeedParcel | null>()
  const read: FeedRow[] = []
  for (const row of rows) {
    if (row.carries === null) continue
    const parcel = parcels.get(row.holder) ?? (await feedParcel(session, contents, row.holder))
    parcels.set(row.holder, parcel)
    const inboxId = inboxIdOf(row.carries)
    const hasBody = inboxId !== null && (await session.all(keptBody, { id: inboxId })).length > 0
    read.push({ row, parcel, hasBody })
  }
  return { entries: feedEntriesOf(read), next: rows.at(-1)?.sequence ?? request.after, ended: rows.length < request.limit }
}

/** The events that endpoints are sent, without those whose parcel or entry was erased since. */
export function feedEntriesOf(rows: readonly FeedRow[]): readonly FeedEntry[] {
  return rows.flatMap(({ row, parcel, hasBody }) => {
    const entry = parcel?.entries.find(({ members }) => members.some(({ sequence }) => sequence === row.entry))
    if (row.carries === null || parcel === null || entry === undefined) return []
    const carries = decodePayloadRef(row.carries)
    return {
      sequence: row.sequence,
      parcelId: parcel.parcelId,
      entry,
      // If retention has deleted the bytes, endpoints get a composed event.
      payload: carries.kind === 'push' && hasBody ? pushed(carries.inboxId, entry, parcel) : composed(parcel),
      backfill: carries.kind === 'composed' && carries.backfill,
      earlierAudience: decodeAudience(row.told_before),
    }
  })
}

/** The push whose bytes are sent; null: none. */
function inboxIdOf(carries: number): number | null {
  const payload = decodePayloadRef(carries)
  return payload.kind === 'push' ? payload.inboxId : null
}

function pushed(inboxId: number, entry: Entry, parcel: FeedParcel): Payload {
  const said = entry.members.find(({ sighting }) => sighting.source === 'push')?.sighting.distributionType
  return { kind: 'push', inboxId, distributionType: said || parcel.distributionType }
}

function composed({ trackingIds, identifiers, distributionType }: FeedParcel): Payload {
  return { kind: 'composed', trackingIds: trackingIds.length === 0 ? identifiers.slice(0, 1) : trackingIds, distributionType }
}
