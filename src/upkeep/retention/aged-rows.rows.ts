import { type SelectQueryBuilder, sql } from 'kysely'
import { CLOCK_SETTING, decodeClockRecord } from '../../core/domain/admin/clock-record.ts'
import type { TimeCursor } from '../../core/domain/delivery/operator-event.ts'
import type { InboxState } from '../../core/domain/ingest/inbox.ts'
import { DELIVERY_STATE, decodeParcel } from '../../core/store/codec.ts'
import { waitingAt } from '../../core/store/delivery/deliveries.ts'
import { prunedTo } from '../../core/store/delivery/feed.ts'
import type { Session } from '../../core/store/engine.ts'
import { INBOX_STATES } from '../../core/store/ingest/inbox-rows.ts'
import { loadSetting } from '../../core/store/settings.ts'
import { statement } from '../../core/store/statement.ts'
import type { Tables } from '../../core/store/tables.ts'
import type { AgedDelivery, AgedPush, AgeMark, ParcelAge, UnrecordedPush } from './retention.rules.ts'

/** A page of rows older than `beforeMs`, the oldest first. `after`: the last row of the previous page. */
export interface AgePage {
  readonly beforeMs: number
  readonly after: TimeCursor | null
  readonly limit: number
}

/** A page of rows with numbers above `after`, up to and including `upTo`. */
export interface NumberPage {
  readonly after: number
  readonly upTo: number
  readonly limit: number
}

/** An answer of the carrier whose bytes are still stored. */
export interface AgedAnswer {
  readonly parcelId: number
  readonly language: string
  readonly digest: Uint8Array
  readonly askedAtMs: number
  readonly bodyBytes: number
  /** Whether it decides the order of its parcel's entries. */
  readonly decidesOrder: boolean
}

/** A page of rows older than `beforeMs`, oldest first. It starts after the row with the time `atMs` and the id `id`. */
type Page = { readonly beforeMs: number; readonly atMs: number; readonly id: number; readonly limit: number }

function pageOf({ beforeMs, after, limit }: AgePage): Page {
  return { beforeMs, atMs: after?.atMs ?? Number.MIN_SAFE_INTEGER, id: after?.id ?? 0, limit }
}

type Aged<Row> = SelectQueryBuilder<Tables, 'delivery' | 'inbox', Row>

/** The page of the rows whose time in this column is before `beforeMs`. */
function oldest<Row>(rows: Aged<Row>, column: 'queued_at_ms' | 'settled_at_ms' | 'received_at_ms', p: Page): Aged<Row> {
  return rows
    .where(column, '<', p.beforeMs)
    .where(column, '>=', p.atMs)
    .where(sql<boolean>`(${sql.ref(column)}, id) > (${p.atMs}, ${p.id})`)
    .orderBy(column)
    .orderBy('id')
    .limit(p.limit)
}

/**
 * Finds deliveries by the time of queuing, in any state. A condition on the state could make one page read a million rows that do not match,
 * for example after an endpoint was down for weeks.
 */
const queued = statement<Page>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'endpoint_id', 'parcel_id', 'queued_at_ms', 'state', 'queued_lived_ms'])
    .$call((rows) => oldest(rows, 'queued_at_ms', p)),
)
const ended = statement<Page>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'settled_at_ms', 'attempts'])
    .where('state', '>=', DELIVERY_STATE.delivered)
    .$call((rows) => oldest(rows, 'settled_at_ms', p)),
)
const pushes = statement<Page>()((db, p) =>
  db
    .selectFrom('inbox')
    .select(['id', 'received_at_ms', 'state', 'parcel_id', sql<number>`length(body)`.as('body_bytes')])
    .where('body', 'is not', null)
    .$call((rows) => oldest(rows, 'received_at_ms', p)),
)
const unrecorded = statement<Page>()((db, p) =>
  db
    .selectFrom('inbox')
    .select(['id', 'received_at_ms', 'state'])
    .where('parcel_id', '=', sql.lit(0))
    .$call((rows) => oldest(rows, 'received_at_ms', p)),
)
const answers = statement<{ beforeMs: number; limit: number }>()((db, p) =>
  db
    .selectFrom('answer')
    .select(['parcel_id', 'language', 'digest', 'asked_at_ms', 'decides_order', sql<number>`length(body)`.as('body_bytes')])
    .where('body', 'is not', null)
    .where('asked_at_ms', '<', p.beforeMs)
    .orderBy('asked_at_ms')
    .limit(p.limit),
)
const parcels = statement<{ after: number; upTo: number; limit: number }>()((db, p) =>
  db.selectFrom('parcel').selectAll().where('id', '>', p.after).where('id', '<=', p.upTo).orderBy('id').limit(p.limit),
)
const newestOf = (table: 'inbox' | 'parcel' | 'delivery') =>
  statement()((db) => db.selectFrom(table).select('id').where('id', '>', sql.lit(0)).orderBy('id', 'desc').limit(sql.lit(1)))
const newest = { push: newestOf('inbox'), parcel: newestOf('parcel'), delivery: newestOf('delivery') }
/** A look-up for each push: as a join, the planner might read the whole index of deliveries that may be sent again. */
const replayable = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('inbox')
    .select('inbox.id as inbox_id')
    .where('inbox.id', 'in', oneOf(p.ids))
    .where(
      (of) =>
        of
          .selectFrom('delivery')
          .select('delivery.id')
          .whereRef('delivery.inbox_id', '=', 'inbox.id')
          .where('delivery.inbox_id', 'is not', null)
          .where('delivery.state', '>=', sql.lit(DELIVERY_STATE.dead))
          .limit(sql.lit(1)),
      'is not',
      null,
    ),
)

/** Finds endpoints with waiting deliveries, including removed endpoints. Each endpoint takes one look-up in an index. */
const backlogs = statement()((db) => db.selectFrom('endpoint').select('id').where(waitingAt, 'is not', null))
/** Finds a waiting delivery for each pair of endpoint and parcel, by an index. With `exists`, the planner may read all waiting deliveries. */
const awaited = statement<{ endpoints: readonly number[]; parcels: readonly number[] }>()((db, p, { rowsOf }) =>
  db
    .selectFrom([rowsOf(p.endpoints).as('endpoint_of'), rowsOf(p.parcels).as('parcel_of')])
    .select('parcel_of.value as parcel_id')
    .select((of) =>
      of
        .selectFrom('delivery')
        .select('delivery.id')
        .whereRef('delivery.endpoint_id', '=', 'endpoint_of.value')
        .whereRef('delivery.parcel_id', '=', 'parcel_of.value')
        .where('delivery.state', '<', DELIVERY_STATE.delivered)
        .limit(1)
        .as('delivery_id'),
    ),
)
/** Like `awaited`, but for deliveries in any state, and for all endpoints, including removed ones. */
const delivered = statement<{ parcels: readonly number[] }>()((db, p, { rowsOf }) =>
  db
    .selectFrom(['endpoint', rowsOf(p.parcels).as('parcel_of')])
    .select('parcel_of.value as parcel_id')
    .select((of) =>
      of
        .selectFrom('delivery')
        .select('delivery.id')
        .whereRef('delivery.endpoint_id', '=', 'endpoint.id')
        .whereRef('delivery.parcel_id', '=', 'parcel_of.value')
        .limit(1)
        .as('delivery_id'),
    ),
)
const feed = statement<{ after: number; upTo: number; limit: number }>()((db, p) =>
  db
    .selectFrom('feed')
    .select('sequence')
    .where('sequence', '>', p.after)
    .where('sequence', '<=', p.upTo)
    .orderBy('sequence')
    .limit(p.limit),
)
const composed = statement<{ after: number; upTo: number; limit: number }>()((db, p) =>
  db
    .selectFrom('composed_event')
    .select('sequence')
    .select((of) =>
      of
        .selectFrom('delivery')
        .select('delivery.id')
        .where('delivery.inbox_id', 'is', null)
        .whereRef('delivery.sequence', '=', 'composed_event.sequence')
        .limit(1)
        .as('named_by'),
    )
    .where('sequence', '>', p.after)
    .where('sequence', '<=', p.upTo)
    .orderBy('sequence')
    .limit(p.limit),
)
const marks = statement()((db) => db.selectFrom('age_mark').selectAll().orderBy('at_ms'))

const STATES: ReadonlyMap<number, InboxState> = new Map([
  [INBOX_STATES.recorded, 'recorded'],
  [INBOX_STATES.quarantined, 'quarantined'],
  [INBOX_STATES.expired, 'expired'],
  [INBOX_STATES.dismissed, 'dismissed'],
])

/**
 * The reads of a retention pass, in its transaction, and of a preview, without a transaction. They page through an index by age, so they read
 * only rows that are old enough.
 */
export function createAgedReads(session: Session) {
  return {
    /** Deliveries in the order in which they were queued. */
    agedDeliveries: async (page: AgePage) => (await session.all(queued, pageOf(page))).map(decodeQueued),
    /** Deliveries that have ended, in the order in which they ended. */
    endedDeliveries: async (page: AgePage) => (await session.all(ended, pageOf(page))).map(decodeEnded),
    /** Pushes whose bytes are still stored. */
    agedPushes: async (page: AgePage) => (await session.all(pushes, pageOf(page))).map(decodePush),
    /** Pushes without a parcel. */
    unrecordedPushes: async (page: AgePage) => (await session.all(unrecorded, pageOf(page))).map(decodeUnrecorded),
    /** Polled answers whose bytes are still stored, in the order in which they were asked for. */
    agedAnswers: async (page: Omit<AgePage, 'after'>) => (await session.all(answers, page)).map(decodeAnswer),
    parcelAges: async (range: NumberPage): Promise<readonly ParcelAge[]> => (await session.all(parcels, range)).map(decodeParcel),
    /** The highest id of a parcel, a push and a delivery. */
    async newest() {
      const [push] = await session.all(newest.push, {})
      const [parcel] = await session.all(newest.parcel, {})
      const [delivery] = await session.all(newest.delivery, {})
      return { parcelId: parcel?.id ?? 0, inboxId: push?.id ?? 0, deliveryId: delivery?.id ?? 0 }
    },
    /** Null: no pass has looked at the clock yet. */
    clockRecord: async () => decodeClockRecord(await loadSetting(session, CLOCK_SETTING)),
    /** Which of these pushes are sent by a dead or cancelled delivery, which an operator may replay. */
    async replayablePushes(ids: readonly number[]): Promise<ReadonlySet<number>> {
      const rows = ids.length === 0 ? [] : await session.all(replayable, { ids })
      return new Set(rows.flatMap(({ inbox_id: id }) => id ?? []))
    },
    /** The ids of endpoints with waiting deliveries. */
    endpointsWithBacklog: async () => (await session.all(backlogs, {})).map(({ id }) => id),
    /** Which of these parcels have a waiting delivery for one of these endpoints. */
    async awaitedParcels(endpoints: readonly number[], of: readonly number[]): Promise<ReadonlySet<number>> {
      if (endpoints.length === 0 || of.length === 0) return new Set()
      const rows = await session.all(awaited, { endpoints, parcels: of })
      return new Set(rows.flatMap((row) => (row.delivery_id === null ? [] : [row.parcel_id])))
    },
    /** Which of these parcels have a stored delivery, waiting or ended. */
    async deliveredParcels(of: readonly number[]): Promise<ReadonlySet<number>> {
      const rows = of.length === 0 ? [] : await session.all(delivered, { parcels: of })
      return new Set(rows.flatMap((row) => (row.delivery_id === null ? [] : [row.parcel_id])))
    },
    agedFeed: async (range: NumberPage) => (await session.all(feed, range)).map(({ sequence }) => sequence),
    /** Composed events by sequence. `isNamed`: a delivery still refers to it. */
    async composedEvents(range: NumberPage) {
      const rows = await session.all(composed, range)
      return rows.map((row) => ({ sequence: row.sequence, isNamed: row.named_by !== null }))
    },
    /** All marks, the oldest first. A mark notes the highest sequence and parcel id that were in use at a time. */
    ageMarks: async () => (await session.all(marks, {})).map(decodeMark),
    /** The last deleted sequence of the feed; 0: none was deleted. */
    feedPrunedTo: () => prunedTo(session),
  }
}

export type AgedReads = ReturnType<typeof createAgedReads>

interface QueuedRow {
  readonly id: number
  readonly endpoint_id: number
  readonly parcel_id: number
  readonly queued_at_ms: number
  readonly state: number
  readonly queued_lived_ms: number | null
}

function decodeQueued(row: QueuedRow): AgedDelivery {
  const { id: deliveryId, endpoint_id, parcel_id: parcelId, queued_at_ms: queuedAtMs, state } = row
  const isWaiting = state < DELIVERY_STATE.delivered
  return { deliveryId, endpointId: String(endpoint_id), parcelId, queuedAtMs, isWaiting, queuedLivedMs: row.queued_lived_ms }
}

function decodeEnded(row: { id: number; settled_at_ms: number | null; attempts: number }) {
  return { deliveryId: row.id, settledAtMs: row.settled_at_ms ?? 0, attempts: row.attempts }
}

function decodeUnrecorded(row: { id: number; received_at_ms: number; state: number }): UnrecordedPush {
  const state = STATES.get(row.state)
  if (state === undefined) throw new Error(`the inbox has a push in the state ${row.state}`)
  return { inboxId: row.id, receivedAtMs: row.received_at_ms, state }
}

function decodePush(row: { id: number; received_at_ms: number; state: number; parcel_id: number; body_bytes: number }): AgedPush {
  return { ...decodeUnrecorded(row), parcelId: row.parcel_id, bodyBytes: row.body_bytes }
}

function decodeAnswer(row: {
  parcel_id: number
  language: string
  digest: Uint8Array
  asked_at_ms: number
  decides_order: number
  body_bytes: number
}): AgedAnswer {
  const { parcel_id: parcelId, language, digest, asked_at_ms: askedAtMs, body_bytes: bodyBytes } = row
  return { parcelId, language, digest, askedAtMs, bodyBytes, decidesOrder: row.decides_order === 1 }
}

function decodeMark(row: { at_ms: number; sequence: number; parcel_id: number }): AgeMark {
  return { atMs: row.at_ms, sequence: row.sequence, parcelId: row.parcel_id }
}
