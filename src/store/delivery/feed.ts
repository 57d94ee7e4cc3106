import type { FeedEvent } from '../../domain/delivery/feed-entry.ts'
import { noAudience } from '../../domain/history/audience.ts'
import { encodeAudience, encodeFeedKind, encodePayloadRef } from '../codec.ts'
import type { Session } from '../engine.ts'
import { loadNumber } from '../settings.ts'
import { statement } from '../statement.ts'

/** The name of the stored setting that says up to which sequence the feed was pruned. */
export const PRUNED_TO = 'feed-pruned-to'

const insertEvent = statement<ReturnType<typeof feedRow>>()((db, p) =>
  db.insertInto('feed').values({
    sequence: p.sequence,
    kind: p.kind,
    parcel_id: p.parcelId,
    entry: p.entry,
    payload_ref: p.payloadRef,
    earlier_audience: p.earlierAudience,
  }),
)

export function appendFeed(session: Session, event: FeedEvent): void {
  session.enqueueWrite(insertEvent, feedRow(event))
}

export function feedRow({ sequence, kind, parcelId, entry, payloadRef }: FeedEvent) {
  return {
    sequence,
    kind: encodeFeedKind(kind),
    parcelId,
    entry,
    payloadRef: encodePayloadRef(payloadRef),
    earlierAudience: encodeAudience(payloadRef?.earlierAudience ?? noAudience),
  }
}

export async function prunedTo(session: Session): Promise<number> {
  return await loadNumber(session, PRUNED_TO)
}
