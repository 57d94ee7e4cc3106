import type { Selectable } from 'kysely'
import { type FeedEntry, payloadOf } from '../../domain/delivery/feed-entry.ts'
import type { FeedParcel } from '../../domain/delivery/feed-event.ts'
import { decodeAudience, decodePayloadRef } from '../codec.ts'
import type { Tables } from '../schema.ts'

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
