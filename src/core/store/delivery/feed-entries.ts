import type { Selectable } from 'kysely'
import { type FeedEntry, type FeedParcel, payloadOf } from '../../domain/delivery/feed-entry.ts'
import { decodeAudience, decodePayloadRef } from '../codec.ts'
import type { Session } from '../engine.ts'
import type { Tables } from '../schema.ts'
import { statement } from '../statement.ts'

/** An event of the feed with its parcel. */
export interface FeedRow {
  readonly row: Pick<Selectable<Tables['feed']>, 'sequence' | 'entry' | 'payload_ref' | 'earlier_audience' | 'earlier_tellings'>
  /** The parcel that holds the event's history now. Null: it was erased. */
  readonly parcel: FeedParcel | null
  /** Whether the bytes of the event's push are still kept. */
  readonly hasBody: boolean
}

/** Makes the events to send to endpoints. Leaves out an event whose parcel or entry has been erased. */
export function feedEntriesOf(rows: readonly FeedRow[]): readonly FeedEntry[] {
  return rows.flatMap(({ row, parcel, hasBody }) => {
    const entry = parcel?.entries.find(({ members }) => members.some(({ sequence }) => sequence === row.entry))
    if (row.payload_ref === null || parcel === null || entry === undefined) return []
    const ref = decodePayloadRef(row.payload_ref)
    return {
      sequence: row.sequence,
      parcelId: parcel.parcelId,
      identifiers: parcel.identifiers,
      entry,
      payload: payloadOf(ref, { entry, parcel, hasBody }),
      backfill: ref.kind === 'composed' ? ref.backfill : null,
      earlierAudience: decodeAudience(row.earlier_audience, row.earlier_tellings),
    }
  })
}

/** Finds a delivery of an entry to an endpoint. An event that is no longer in the feed is known by the number of its sighting. */
const sentTo = statement<{ endpointId: number; parcelId: number; sequences: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('delivery')
    .leftJoin('feed', 'feed.sequence', 'delivery.sequence')
    .select('delivery.sequence')
    .where('delivery.endpoint_id', '=', p.endpointId)
    .where('delivery.parcel_id', '=', p.parcelId)
    .where((row) => row.or([row('feed.entry', 'in', oneOf(p.sequences)), row('delivery.sequence', 'in', oneOf(p.sequences))]))
    .limit(1),
)

/**
 * Leaves out the events whose entry the endpoint was sent already. Several events may be about one entry if parcels were joined, because then
 * each of the parcels may have reported it.
 */
export async function leaveOutSent(session: Session, endpointId: string, entries: readonly FeedEntry[]): Promise<readonly FeedEntry[]> {
  const sent = await Promise.all(
    entries.map(async ({ entry: { members }, parcelId, sequence }) => {
      const sequences = members.map((member) => member.sequence)
      // The first event about an entry has the number of its sighting.
      if (sequences.length === 1 && sequences[0] === sequence) return false
      return (await session.all(sentTo, { endpointId: Number(endpointId), parcelId, sequences })).length > 0
    }),
  )
  return entries.filter((_, nth) => sent[nth] === false)
}
