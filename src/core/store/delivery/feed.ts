import { type Expression, type Selectable, sql } from 'kysely'
import {
  type FeedEntries,
  type FeedEntry,
  type FeedEvent,
  type FeedItem,
  type FeedKind,
  type FeedNews,
  type FeedParcel,
  type FeedSlice,
  payloadOf,
  type ToldBreach,
} from '../../domain/delivery/feed-entry.ts'
import type { WatchdogTold } from '../../domain/delivery/watchdog-event.ts'
import { noAudience } from '../../domain/history/audience.ts'
import type { Renumbered } from '../../domain/history/sightings.ts'
import {
  decodeAudience,
  decodeFeedKind,
  decodeJoined,
  decodePayloadRef,
  encodeAudience,
  encodeFeedKind,
  encodePayloadRef,
  encodeTellings,
} from '../codec.ts'
import type { Session } from '../engine.ts'
import type { Contents } from '../history/contents.ts'
import { viewParcels } from '../history/parcel-view.ts'
import { loadSightingsOf } from '../history/sighting-rows.ts'
import { loadToldBreaches } from '../history/watched.ts'
import { loadNumber } from '../settings.ts'
import { rowOf, statement } from '../statement.ts'
import { COLUMNS, type Tables } from '../tables.ts'

/** The name of the stored setting that says up to which sequence the feed was pruned. */
export const PRUNED_TO = 'feed-pruned-to'

const insertEvent = statement<ReturnType<typeof feedRow>>()((db, p) => db.insertInto('feed').values(rowOf(COLUMNS.feed, p)))

export function appendFeed(session: Session, event: FeedEvent): void {
  session.enqueueWrite(insertEvent, feedRow(event))
}

export function feedRow({ sequence, kind, parcelId, entry, payloadRef }: FeedEvent) {
  const earlier = payloadRef?.earlierAudience ?? noAudience
  return {
    sequence,
    kind: encodeFeedKind(kind),
    parcel_id: parcelId,
    entry,
    payload_ref: encodePayloadRef(payloadRef),
    earlier_audience: encodeAudience(earlier),
    earlier_tellings: encodeTellings(earlier),
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

/** Makes an expression that finds the next join of a parcel into another. Kind 4 is a join. The 4 is a literal, so that a partial index applies. */
function nextJoin(parcelId: Expression<number>, after: Expression<number>) {
  return sql<number | null>`(
    select following.sequence from feed as following
    where following.kind = 4 and following.entry = ${parcelId} and following.sequence > ${after} order by following.sequence limit 1
  )`
}

/**
 * Makes an expression for the id of the parcel that now holds the history of `parcelId`, after any number of joins after `sequence`.
 */
export function survivorOf(parcelId: Expression<number>, sequence: Expression<number>) {
  return sql<number>`(
    with recursive holder (id, join_at) as (
      select ${parcelId}, ${nextJoin(parcelId, sequence)}
      union all
      select joined.parcel_id, ${nextJoin(sql.ref('joined.parcel_id'), sql.ref('joined.sequence'))}
      from holder inner join feed as joined on joined.sequence = holder.join_at
    ) select id from holder where join_at is null
  )`
}

/** Selects the events after a sequence, each with the parcel that holds its history now. */
export const eventsAfter = statement<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom('feed')
    .selectAll()
    .select((row) => survivorOf(row.ref('feed.parcel_id'), row.ref('feed.sequence')).as('holder'))
    .where('sequence', '>', p.after)
    .orderBy('sequence')
    .limit(p.limit),
)
const auditOf = statement<{ sequences: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('audit').select(['sequence', 'detail']).where('sequence', 'in', oneOf(p.sequences)),
)

export interface FeedRequest {
  readonly after: number
  readonly limit: number
}

/**
 * Reads the events after a sequence, with the current content of all their parcels. The caller adds the last sequence of the feed, because
 * each engine stores it in its own way.
 */
export async function readFeed(session: Session, contents: Contents, request: FeedRequest): Promise<Omit<FeedSlice, 'last'>> {
  const rows = await session.all(eventsAfter, request)
  const holders = [...new Set(rows.map(({ holder }) => holder))]
  const joins = rows.filter(({ kind }) => decodeFeedKind(kind) === 'join').map(({ sequence }) => sequence)
  const [parcels, identifiers] = await Promise.all([
    feedParcels(session, contents, holders),
    joins.length === 0 ? new Map<number, readonly string[]>() : joinedIdentifiers(session, joins),
  ])
  const ofRules = rows.filter(({ kind }) => isOfRule(decodeFeedKind(kind))).map(({ entry }) => -entry)
  const breaches = await loadToldBreaches(session, ofRules)
  const items: FeedItem[] = []
  for (const row of rows) {
    const kind = decodeFeedKind(row.kind)
    if (kind === 'retired' || kind === 'erased') {
      items.push({ sequence: row.sequence, kind, parcelId: row.parcel_id })
      continue
    }
    const parcel = parcels.get(row.holder) ?? null
    if (parcel === null) {
      // Leave out the event, because its parcel is gone. But a reader may still hold the parcel that was joined to it. An erasure empties the record of
      // a join, and retention deletes it.
      if (kind === 'join')
        items.push({ sequence: row.sequence, kind: identifiers.has(row.sequence) ? 'erased' : 'retired', parcelId: row.entry })
      continue
    }
    const entry = kind === 'join' ? undefined : parcel.entries.find(({ members }) => members.some((kept) => kept.sequence === row.entry))
    const joined = kind === 'join' ? { parcelId: row.entry, identifiers: identifiers.get(row.sequence) ?? [] } : null
    const breach = isOfRule(kind) ? (breaches.get(-row.entry) ?? null) : null
    items.push({ sequence: row.sequence, kind, parcel, entry: entry ?? null, joined, breach })
  }
  return {
    items,
    next: rows.at(-1)?.sequence ?? request.after,
    ended: rows.length < request.limit,
    prunedTo: await prunedTo(session),
  }
}

function isOfRule(kind: FeedKind): boolean {
  return kind === 'stalled' || kind === 'recovered'
}

const living = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('parcel').select('id').where('id', 'in', oneOf(p.ids)),
)

/** Loads parcels by id. One that is gone is absent. */
export async function feedParcels(session: Session, contents: Contents, ids: readonly number[]): Promise<ReadonlyMap<number, FeedParcel>> {
  const found = ids.length === 0 ? [] : (await session.all(living, { ids })).map(({ id }) => id)
  return found.length === 0 ? new Map() : await viewParcels(session, found, loadSightingsOf(session, contents, found))
}

async function joinedIdentifiers(session: Session, sequences: readonly number[]): Promise<ReadonlyMap<number, readonly string[]>> {
  const rows = await session.all(auditOf, { sequences })
  return new Map(rows.map(({ sequence, detail }) => [sequence, decodeJoined(detail)]))
}

/** An event of the feed with its parcel. */
export interface FeedRow {
  readonly row: Pick<Selectable<Tables['feed']>, 'sequence' | 'kind' | 'entry' | 'payload_ref' | 'earlier_audience' | 'earlier_tellings'>
  /** The parcel that holds the event's history now. Null: it was erased. */
  readonly parcel: FeedParcel | null
  /** Whether the bytes of the event's push are still kept. */
  readonly hasBody: boolean
}

/** Makes what an endpoint that catches up is sent of events of the feed, unless it was sent it already. */
export async function feedEntriesFor(
  session: Session,
  endpointId: string,
  rows: readonly FeedRow[],
): Promise<Pick<FeedEntries, 'entries' | 'news'>> {
  const [entries, news] = await Promise.all([
    leaveOutSent(session, endpointId, feedEntriesOf(rows)),
    feedNewsOf(session, Number(endpointId), rows),
  ])
  return { entries, news }
}

/** Leaves out a breach that is no longer known, because its parcel was erased, or joined to one with the same breach. */
async function feedNewsOf(session: Session, endpointId: number, rows: readonly FeedRow[]): Promise<readonly FeedNews[]> {
  const ofRules = rows.filter(({ row }) => isOfRule(decodeFeedKind(row.kind)))
  const breaches = await loadToldBreaches(
    session,
    ofRules.map(({ row }) => -row.entry),
  )
  const news = ofRules.flatMap(({ row: { sequence, kind, entry }, parcel }): FeedNews[] => {
    const breach = breaches.get(-entry)
    const told = breach === undefined ? null : toldOf(decodeFeedKind(kind), breach)
    return parcel === null || told === null ? [] : [{ sequence, parcel, told }]
  })
  const sent = await Promise.all(
    news.map(({ sequence, parcel: { parcelId } }) => session.all(sentTo, { endpointId, parcelId, sequences: [sequence] })),
  )
  return news.filter((_, nth) => sent[nth]?.length === 0)
}

/** Null: the breach lasts, because the one that is over was of a parcel that was joined. */
function toldOf(kind: FeedKind, { rule, sinceMs, checked, toldAtMs, endedAtMs }: ToldBreach): WatchdogTold | null {
  if (kind === 'stalled') return { kind, rule, sinceMs, checked, atMs: toldAtMs }
  return endedAtMs === null ? null : { kind: 'recovered', rule, sinceMs, because: null, atMs: endedAtMs }
}

/** Makes the events to send to endpoints. Leaves out an event whose parcel or entry has been erased. */
function feedEntriesOf(rows: readonly FeedRow[]): readonly FeedEntry[] {
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
      order: parcel.order,
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
async function leaveOutSent(session: Session, endpointId: string, entries: readonly FeedEntry[]): Promise<readonly FeedEntry[]> {
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
