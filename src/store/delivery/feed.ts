import type { FeedEvent } from '../../domain/delivery/feed-entry.ts'
import { noAudience } from '../../domain/history/audience.ts'
import { encodeAudience, encodeFeedKind, encodePayloadRef } from '../codec.ts'
import type { Session } from '../engine.ts'
import { loadNumber } from '../settings.ts'
import { statement } from '../statement.ts'

const PRUNED_TO = 'feed-pruned-to'

const insertEvent = statement<{
  sequence: number
  kind: number
  parcelId: number
  entry: number
  payload_ref: number | null
  earlierAudience: number
}>()((db, p) =>
  db.insertInto('feed').values({
    sequence: p.sequence,
    kind: p.kind,
    parcel_id: p.parcelId,
    entry: p.entry,
    payload_ref: p.payload_ref,
    earlier_audience: p.earlierAudience,
  }),
)

export function appendFeed(session: Session, { sequence, kind, parcelId, entry, payloadRef }: FeedEvent): void {
  session.enqueueWrite(insertEvent, {
    sequence,
    kind: encodeFeedKind(kind),
    parcelId,
    entry,
    payload_ref: encodePayloadRef(payloadRef),
    earlierAudience: encodeAudience(payloadRef?.earlierAudience ?? noAudience),
  })
}

/** Returns the sequence up to which the feed was pruned. */
export async function prunedTo(session: Session): Promise<number> {
  return await loadNumber(session, PRUNED_TO)
}
