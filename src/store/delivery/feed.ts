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
  carries: number | null
  earlierAudience: number
}>()((db, p) =>
  db.insertInto('feed').values({
    sequence: p.sequence,
    kind: p.kind,
    parcel_id: p.parcelId,
    entry: p.entry,
    carries: p.carries,
    told_before: p.earlierAudience,
  }),
)

export function appendFeed(session: Session, { sequence, kind, parcelId, entry, payloadRef }: FeedEvent): void {
  session.enqueueWrite(insertEvent, {
    sequence,
    kind: encodeFeedKind(kind),
    parcelId,
    entry,
    carries: encodePayloadRef(payloadRef),
    earlierAudience: encodeAudience(payloadRef?.earlierAudience ?? noAudience),
  })
}

/** Returns the sequence up to which the feed was pruned. */
export async function prunedTo(session: Session): Promise<number> {
  return await loadNumber(session, PRUNED_TO)
}
