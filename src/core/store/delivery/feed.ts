import { sql } from 'kysely'
import type { FeedEvent } from '../../domain/delivery/feed-entry.ts'
import { noAudience } from '../../domain/history/audience.ts'
import type { Renumbered } from '../../domain/history/sightings.ts'
import { encodeAudience, encodeFeedKind, encodePayloadRef, encodeTellings } from '../codec.ts'
import type { Session } from '../engine.ts'
import { loadNumber } from '../settings.ts'
import { statement } from '../statement.ts'
import { survivorOf } from './survivors.ts'

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
    earlier_tellings: p.earlierTellings,
  }),
)

export function appendFeed(session: Session, event: FeedEvent): void {
  session.enqueueWrite(insertEvent, feedRow(event))
}

export function feedRow({ sequence, kind, parcelId, entry, payloadRef }: FeedEvent) {
  const earlier = payloadRef?.earlierAudience ?? noAudience
  return {
    sequence,
    kind: encodeFeedKind(kind),
    parcelId,
    entry,
    payloadRef: encodePayloadRef(payloadRef),
    earlierAudience: encodeAudience(earlier),
    earlierTellings: encodeTellings(earlier),
  }
}

const renumberFirst = statement<{ from: number; to: number }>()((db, p) =>
  db
    .updateTable('feed')
    .set({ entry: p.to })
    .where('sequence', '=', p.from)
    .where('entry', '=', p.from)
    .where('payload_ref', 'is not', null),
)
/** The conditions are those of the index. */
const renumberLater = statement<{ from: number; to: number }>()((db, p) =>
  db
    .updateTable('feed')
    .set({ entry: p.to })
    .where('entry', '=', p.from)
    .where((row) => row(row.ref('entry'), '<>', row.ref('sequence')))
    .where('payload_ref', 'is not', null),
)

/** Lets the events of a sighting that a join has united with an equal one name the sighting that stays, so that readers still find its entry. */
export async function renumberEvents(session: Session, { from, to }: Renumbered): Promise<void> {
  await session.run(renumberLater, { from, to })
  await session.run(renumberFirst, { from, to })
}

/** How many events next to a sequence are looked at: parcels may have been erased, so the time of an event may be lost. */
const TIMES_LOOKED_AT = 20

/** Finds the events about new entries next to a sequence. `learnt_at_ms`: when the event was recorded; null: not known, or the parcel was erased. */
const timesNear = (isBefore: boolean) =>
  statement<{ sequence: number }>()((db, p) =>
    db
      .selectFrom((of) =>
        of
          .selectFrom('feed')
          .select('entry')
          .select((row) => survivorOf(row.ref('feed.parcel_id'), row.ref('feed.sequence')).as('holder'))
          .where('kind', '=', sql.lit(encodeFeedKind('entry')))
          .where('sequence', isBefore ? '<=' : '>', p.sequence)
          .orderBy('sequence', isBefore ? 'desc' : 'asc')
          .limit(sql.lit(TIMES_LOOKED_AT))
          .as('near'),
      )
      .select((row) =>
        row
          .selectFrom('sighting')
          .select('learnt_at_ms')
          .whereRef('sighting.parcel_id', '=', 'near.holder')
          .whereRef('sighting.sequence', '=', 'near.entry')
          .as('learnt_at_ms'),
      ),
  )
const timesUpTo = timesNear(true)
const timesAfter = timesNear(false)

/** When an event of the feed was recorded, or the event next to it whose time is known, epoch milliseconds; null: no time is known. */
export async function recordedAt(session: Session, sequence: number): Promise<number | null> {
  const timeIn = async (times: typeof timesUpTo) =>
    (await session.all(times, { sequence })).find((row) => row.learnt_at_ms !== null)?.learnt_at_ms ?? null
  return (await timeIn(timesUpTo)) ?? (await timeIn(timesAfter))
}

export async function prunedTo(session: Session): Promise<number> {
  return await loadNumber(session, PRUNED_TO)
}
