import type { FeedEntries, FeedEntriesRequest, FeedParcel } from '../../domain/delivery/feed-entry.ts'
import { decodePayloadRef } from '../codec.ts'
import { eventsAfter, type FeedRow, feedEntriesOf, feedParcel, leaveOutSent } from '../delivery/feed.ts'
import type { Session } from '../engine.ts'
import type { Contents } from '../history/contents.ts'
import { statement } from '../statement.ts'

const keptBody = statement<{ id: number }>()((db, p) =>
  db.selectFrom('inbox').select('id').where('id', '=', p.id).where('body', 'is not', null),
)

/**
 * See `WriteTx.readFeedEntries`. Entries have their current content, but the payload of the original event.
 *
 * It reads row by row, which is safe only because nobody else commits between two reads. Otherwise a parcel that is joined to another between
 * two reads would look erased.
 */
export async function readFeedEntries(session: Session, contents: Contents, request: FeedEntriesRequest): Promise<FeedEntries> {
  const rows = await session.all(eventsAfter, request)
  const parcels = new Map<number, FeedParcel | null>()
  const read: FeedRow[] = []
  for (const row of rows) {
    if (row.payload_ref === null) continue
    const parcel = parcels.get(row.holder) ?? (await feedParcel(session, contents, row.holder))
    parcels.set(row.holder, parcel)
    const inboxId = inboxIdOf(row.payload_ref)
    const hasBody = inboxId !== null && (await session.all(keptBody, { id: inboxId })).length > 0
    read.push({ row, parcel, hasBody })
  }
  const entries = await leaveOutSent(session, request.endpointId, feedEntriesOf(read))
  return { entries, next: rows.at(-1)?.sequence ?? request.after, ended: rows.length < request.limit }
}

/** Returns the inbox id of the push whose bytes are sent; null: a composed event is sent. */
function inboxIdOf(ref: number): number | null {
  const payload = decodePayloadRef(ref)
  return payload.kind === 'push' ? payload.inboxId : null
}
