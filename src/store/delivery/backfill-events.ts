import { sql } from 'kysely'
import type { FeedParcel } from '../../domain/delivery/feed-event.ts'
import type { BackfillEvents, BackfillQuery } from '../../domain/delivery/missing.ts'
import type { Session } from '../engine.ts'
import type { Contents } from '../history/contents.ts'
import { statement } from '../statement.ts'
import { feedEntriesOf } from './feed-entries.ts'
import { feedParcel } from './read-feed.ts'
import { survivorOf } from './survivors.ts'

type Range = { endpointId: number; after: number; upTo: number }

/** Selects events that the feed marks as backfill. It must repeat the condition of the partial index exactly, or the index is not used. */
const IS_BACKFILL = sql<boolean>`feed.payload_ref < 0`

/** `queued_as`: the endpoint's delivery of the event. Null: it has none. `limit` also counts the events that have a delivery. */
const all = statement<Range & { limit: number }>()((db, p) =>
  db
    .selectFrom((of) =>
      of
        .selectFrom('feed')
        .select(['sequence', 'entry', 'payload_ref', 'earlier_audience', 'earlier_tellings'])
        .select((row) => survivorOf(row.ref('feed.parcel_id'), row.ref('feed.sequence')).as('holder'))
        .where(IS_BACKFILL)
        .where('sequence', '>', p.after)
        .where('sequence', '<=', p.upTo)
        .orderBy('sequence')
        .limit(p.limit)
        .as('told'),
    )
    .selectAll('told')
    .select((row) =>
      row
        .selectFrom('delivery')
        .select('delivery.id')
        .where('delivery.endpoint_id', '=', p.endpointId)
        .whereRef('delivery.parcel_id', '=', 'told.holder')
        .whereRef('delivery.sequence', '=', 'told.sequence')
        .limit(sql.lit(1))
        .as('queued_as'),
    ),
)
/** Finds the events of one parcel in the feed, by their sequences. The parcel's sightings contain these sequences (`encodeAudience`). */
const ofParcel = statement<Range & { parcelId: number }>()((db, p, { integer }) =>
  db
    .selectFrom('feed')
    .select(['feed.sequence', 'feed.entry', 'feed.payload_ref', 'feed.earlier_audience', 'feed.earlier_tellings'])
    .select(integer(p.parcelId).as('holder'))
    .select((row) =>
      row
        .selectFrom('delivery')
        .select('delivery.id')
        .where('delivery.endpoint_id', '=', p.endpointId)
        .where('delivery.parcel_id', '=', p.parcelId)
        .whereRef('delivery.sequence', '=', 'feed.sequence')
        .limit(sql.lit(1))
        .as('queued_as'),
    )
    .where('feed.sequence', 'in', (of) =>
      of
        .selectFrom('sighting')
        .select(sql<number>`-sighting.audience`.as('sequence'))
        .where('sighting.parcel_id', '=', p.parcelId)
        .where('sighting.audience', '<', 0),
    )
    .where(IS_BACKFILL)
    .where('feed.sequence', '>', p.after)
    .where('feed.sequence', '<=', p.upTo),
)

/** An event that the feed marks as backfill, and the parcel that holds its history now. */
export interface BackfillRow {
  readonly sequence: number
  readonly entry: number
  readonly payload_ref: number | null
  readonly earlier_audience: number
  readonly earlier_tellings: string | null
  readonly holder: number
}

const NO_ENDPOINT = 0

/** Finds backfill events of which the endpoint has no delivery, sorted by sequence. `next`: the sequence to continue after; null: no more. */
export async function findBackfill(
  session: Session,
  { endpointId, parcelId, after, upTo, limit }: BackfillQuery,
): Promise<{ readonly rows: readonly BackfillRow[]; readonly next: number | null }> {
  const range = { endpointId: endpointId === null ? NO_ENDPOINT : Number(endpointId), after, upTo }
  const rows = parcelId === null ? await session.all(all, { ...range, limit }) : await session.all(ofParcel, { ...range, parcelId })
  const found = rows.toSorted((a, b) => a.sequence - b.sequence).slice(0, limit)
  const last = found.length < limit ? undefined : found.at(-1)
  return { rows: found.filter((row) => row.queued_as === null), next: last?.sequence ?? null }
}

/** Reads backfill events with the current content of their parcels. During the call, the session must see no new commits. */
export async function readBackfill(session: Session, contents: Contents, query: BackfillQuery): Promise<BackfillEvents> {
  const { rows, next } = await findBackfill(session, query)
  const holders = [...new Set(rows.map(({ holder }) => holder))]
  const read = await Promise.all(
    holders.map(async (id): Promise<[number, FeedParcel | null]> => [id, await feedParcel(session, contents, id)]),
  )
  const parcels = new Map(read)
  return { events: feedEntriesOf(rows.map((row) => ({ row, parcel: parcels.get(row.holder) ?? null, hasBody: false }))), next }
}
