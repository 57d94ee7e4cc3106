import { type Kysely, type RawBuilder, sql } from 'kysely'
import {
  type AttemptRecord,
  type DeliveryCursor,
  type DeliveryPage,
  type DeliveryQuery,
  EVENT_READ_MAX,
  type FoundDelivery,
  type InspectedDelivery,
  type ListedDelivery,
  type QueuedSpan,
  readToldEvent,
  type SentEvent,
  type ToldEvent,
} from '../../domain/delivery/delivery-list.ts'
import { watchdogEventIn } from '../../domain/delivery/watchdog-event.ts'
import { DELIVERY_STATE, decodeEndpointTarget } from '../codec.ts'
import type { Session } from '../engine.ts'
import { loadContexts } from '../history/order-contexts.ts'
import { loadNames } from '../history/parcels.ts'
import { type Dialect, statement } from '../statement.ts'
import type { Tables } from '../tables.ts'
import { acceptedAttempt, type DeliveryRow, decodeAttempt, decodeDelivery } from './delivery-codec.ts'

/** The most deliveries that a page scans. Without this limit, a page of a rare state could scan the whole table. */
const LOOKED_AT_MAX = 50_000

const newestBefore = statement<{ before: number }>()((db, p) =>
  db.selectFrom('delivery').select('id').where('id', '>', 0).where('id', '<', p.before).orderBy('id', 'desc').limit(1),
)

type Wanted = {
  readonly limit: number
  readonly endpointId: number | null
  readonly a: number
  readonly b: number
  readonly held: number | null
  readonly tried: number | null
}

/** Waiting deliveries of a removed endpoint count as cancelled even before their rows are updated. */
const stateNow = sql<number>`(case when delivery.state < 2 and endpoint.removed_at_ms is not null then 4 else delivery.state end)`

const wanted = (db: Kysely<Tables>, p: Wanted, { integer }: Dialect) =>
  db
    .selectFrom('delivery')
    .innerJoin('endpoint', 'endpoint.id', 'delivery.endpoint_id')
    .selectAll('delivery')
    .select(['endpoint.name as endpoint_name', 'endpoint.disabled', 'endpoint.removed_at_ms'])
    .select(['endpoint.probe_at_ms', 'endpoint.woken_at_ms', 'endpoint.round as endpoint_round'])
    .where(isAny(sql.ref('delivery.endpoint_id'), integer(p.endpointId)))
    .where(stateNow, '>=', p.a)
    .where(stateNow, '<=', p.b)
    .where(isAny(sql`(case when endpoint.disabled is null then 0 else 1 end)`, integer(p.held)))
    .where(isAny(sql`(case when delivery.attempts > 0 then 1 else 0 end)`, integer(p.tried)))
    .limit(p.limit)

const page = statement<Wanted & { readonly before: number; readonly from: number }>()((db, p, dialect) =>
  wanted(db, p, dialect).where('delivery.id', '<', p.before).where('delivery.id', '>=', p.from).orderBy('delivery.id', 'desc'),
)
// A parcel has only a few deliveries. The index by endpoint and parcel finds them only if the statement names all endpoints.
const pageOfParcel = statement<
  Wanted & { readonly fromMs: number; readonly toMs: number; readonly before: number; readonly parcelId: number }
>()((db, p, dialect) =>
  wanted(db, p, dialect)
    .where('delivery.endpoint_id', 'in', dialect.anyEndpoint)
    .where('delivery.parcel_id', '=', p.parcelId)
    .where('delivery.id', '<', p.before)
    .where('delivery.queued_at_ms', '>=', p.fromMs)
    .where('delivery.queued_at_ms', '<', p.toMs)
    .orderBy('delivery.id', 'desc'),
)

type Span = { readonly fromMs: number; readonly toMs: number; readonly beforeMs: number; readonly beforeId: number }

/** The cursor is a time and an id, because several deliveries may have the same time. */
const isBefore = (p: Span) => sql<boolean>`(delivery.queued_at_ms, delivery.id) < (${p.beforeMs}, ${p.beforeId})`
const pageByTime = statement<Wanted & Span & { readonly endMs: number; readonly endId: number }>()((db, p, dialect) =>
  wanted(db, p, dialect)
    .where('delivery.queued_at_ms', '>=', p.fromMs)
    .where('delivery.queued_at_ms', '<', p.toMs)
    .where(isBefore(p))
    .where(sql<boolean>`(delivery.queued_at_ms, delivery.id) >= (${p.endMs}, ${p.endId})`)
    .orderBy('delivery.queued_at_ms', 'desc')
    .orderBy('delivery.id', 'desc'),
)
const endByTime = statement<Span>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'queued_at_ms'])
    .where('queued_at_ms', '>=', p.fromMs)
    .where('queued_at_ms', '<', p.toMs)
    .where(isBefore(p))
    .orderBy('queued_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .offset(LOOKED_AT_MAX - 1),
)

/** The value null matches every row. */
function isAny(column: RawBuilder<unknown>, value: RawBuilder<number>): RawBuilder<boolean> {
  return sql<boolean>`(${value} is null or ${column} = ${value})`
}

const { behind, due } = DELIVERY_STATE
/** The conditions for each state. The stored state is from `a` to `b`. `held`: 1 if the endpoint is disabled. `tried`: 1 after an attempt. */
const STATES: Readonly<Record<NonNullable<DeliveryQuery['state']>, { a: number; b: number; held: number | null; tried: number | null }>> = {
  queued: { a: behind, b: due, held: 0, tried: 0 },
  retrying: { a: behind, b: due, held: 0, tried: 1 },
  held: { a: behind, b: due, held: 1, tried: null },
  delivered: { a: DELIVERY_STATE.delivered, b: DELIVERY_STATE.delivered, held: null, tried: null },
  dead: { a: DELIVERY_STATE.dead, b: DELIVERY_STATE.dead, held: null, tried: null },
  cancelled: { a: DELIVERY_STATE.cancelled, b: DELIVERY_STATE.cancelled, held: null, tried: null },
}
const ANY_STATE = { a: behind, b: DELIVERY_STATE.cancelled, held: null, tried: null }

const WHENEVER: QueuedSpan = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }

/** Lists deliveries, newest first. Searches by the parcel if it is given, otherwise by time if a span is given, otherwise by id. */
export async function listDeliveries(session: Session, query: DeliveryQuery): Promise<DeliveryPage> {
  const { parcelId, queued, limit } = query
  const state = query.state === null ? ANY_STATE : STATES[query.state]
  const asked = { ...state, endpointId: query.endpointId === null ? null : Number(query.endpointId), limit }
  if (parcelId !== null) {
    const before = query.before?.id ?? Number.MAX_SAFE_INTEGER
    const rows = await session.all(pageOfParcel, { ...asked, ...(queued ?? WHENEVER), before, parcelId })
    return { deliveries: await withDetails(session, rows), next: rows.length < limit ? null : cursorOf(rows.at(-1)) }
  }
  return queued === undefined ? await listById(session, asked, query.before) : await listByTime(session, asked, queued, query)
}

async function listById(session: Session, asked: Wanted, cursor: DeliveryCursor | null): Promise<DeliveryPage> {
  // Begin at the newest delivery before the cursor, because a restore leaves a gap of up to 10^9 ids, too large to scan page by page.
  const [last] = await session.all(newestBefore, { before: cursor?.id ?? Number.MAX_SAFE_INTEGER })
  if (last === undefined) return { deliveries: [], next: null }
  const before = last.id + 1
  const from = Math.max(1, before - LOOKED_AT_MAX)
  const rows = await session.all(page, { ...asked, before, from })
  const next = rows.length < asked.limit ? from : (rows.at(-1)?.id ?? from)
  return { deliveries: await withDetails(session, rows), next: next > 1 ? { id: next, queuedAtMs: 0 } : null }
}

async function listByTime(session: Session, asked: Wanted, queued: QueuedSpan, query: DeliveryQuery): Promise<DeliveryPage> {
  const { before, state, endpointId } = query
  const span = { ...queued, beforeMs: before?.queuedAtMs ?? Number.MAX_SAFE_INTEGER, beforeId: before?.id ?? 0 }
  // Without a state or an endpoint in the query, every row matches, so the scan ends when the page is full.
  const [end] = state === null && endpointId === null ? [] : await session.all(endByTime, span)
  const rows = await session.all(pageByTime, { ...asked, ...span, endMs: end?.queued_at_ms ?? 0, endId: end?.id ?? 0 })
  return { deliveries: await withDetails(session, rows), next: rows.length < asked.limit ? cursorOf(end) : cursorOf(rows.at(-1)) }
}

function cursorOf(row: { readonly id: number; readonly queued_at_ms: number } | undefined): DeliveryCursor | null {
  return row === undefined ? null : { id: row.id, queuedAtMs: row.queued_at_ms }
}

const one = statement<{ id: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .innerJoin('endpoint', 'endpoint.id', 'delivery.endpoint_id')
    .selectAll('delivery')
    .select(['endpoint.name as endpoint_name', 'endpoint.disabled', 'endpoint.removed_at_ms'])
    .select(['endpoint.probe_at_ms', 'endpoint.woken_at_ms', 'endpoint.round as endpoint_round'])
    .where('delivery.id', '=', p.id),
)
const attemptsOf = statement<{ id: number }>()((db, p) =>
  db.selectFrom('attempt').selectAll().where('delivery_id', '=', p.id).orderBy('id', 'desc').limit(1000),
)

/** The attempts are newest first. Null: there is no such delivery. */
export async function findDelivery(session: Session, id: number): Promise<InspectedDelivery | null> {
  const [row] = await session.all(one, { id })
  if (row === undefined) return null
  const accepted = acceptedAttempt(row)
  const attempts = [...(accepted === null ? [] : [accepted]), ...(await session.all(attemptsOf, { id })).map(decodeAttempt)]
  const [delivery] = await withIdentifiers(session, [decodeDelivery(row)])
  if (delivery === undefined) return null
  const sent = await findSentEvent(session, id)
  const event = sent.body === null ? null : readToldEvent(sent.body)
  const order = (await loadContexts(session, [delivery.parcelId])).get(delivery.parcelId) ?? null
  return { delivery: { ...delivery, event, lastAttempt: attempts[0] ?? null }, attempts, sent: { ...sent, order } }
}

const sentOf = statement<{ id: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .innerJoin('endpoint', 'endpoint.id', 'delivery.endpoint_id')
    .select((of) => [
      'endpoint.settings',
      'delivery.inbox_id',
      of
        .case()
        .when('delivery.inbox_id', 'is', null)
        .then(of.selectFrom('composed_event').select('composed_event.body').whereRef('composed_event.sequence', '=', 'delivery.sequence'))
        .else(of.selectFrom('inbox').select('inbox.body').whereRef('inbox.id', '=', 'delivery.inbox_id'))
        .end()
        .as('body'),
    ])
    .where('delivery.id', '=', p.id),
)

/** Loads the body and the URL of a delivery. */
async function findSentEvent(session: Session, deliveryId: number): Promise<SentEvent> {
  const [row] = await session.all(sentOf, { id: deliveryId })
  if (row === undefined) throw new Error(`delivery ${deliveryId} has no endpoint`)
  const event = row.inbox_id !== null || row.body === null ? null : watchdogEventIn(row.body)
  return { ...decodeEndpointTarget(row.settings), body: row.body, ...(event === null ? {} : { event }) }
}

const pushedOf = statement<{ ids: readonly number[]; bytesMax: number }>()((db, p, { oneOf }) =>
  db
    .selectFrom('delivery')
    .innerJoin('inbox', 'inbox.id', 'delivery.inbox_id')
    .select(['delivery.id', 'inbox.body'])
    .where('delivery.id', 'in', oneOf(p.ids))
    .where((row) => row(row.fn<number>('length', ['inbox.body']), '<=', p.bytesMax)),
)
const composedOf = statement<{ ids: readonly number[]; bytesMax: number }>()((db, p, { oneOf, unindexed }) =>
  db
    .selectFrom('delivery')
    .innerJoin('composed_event', 'composed_event.sequence', 'delivery.sequence')
    .select(['delivery.id', 'composed_event.body'])
    .where('delivery.id', 'in', oneOf(p.ids))
    .where(unindexed(sql.ref<number | null>('delivery.inbox_id')), 'is', null)
    .where((row) => row(row.fn<number>('length', ['composed_event.body']), '<=', p.bytesMax)),
)
const lastAttempts = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('attempt')
    .selectAll()
    .where('id', 'in', (of) =>
      of
        .selectFrom('attempt as last')
        .select((row) => row.fn.max('last.id').as('id'))
        .where('last.delivery_id', 'in', oneOf(p.ids))
        .groupBy('last.delivery_id'),
    ),
)

/** Adds to deliveries the identifiers of their parcels, a summary of their events, and their last attempts. */
async function withDetails(session: Session, rows: readonly DeliveryRow[]): Promise<readonly FoundDelivery[]> {
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const identifiers = await withIdentifiers(session, rows.map(decodeDelivery))
  const events = new Map<number, ToldEvent | null>()
  const asked = { ids, bytesMax: EVENT_READ_MAX }
  for (const { id, body } of [...(await session.all(pushedOf, asked)), ...(await session.all(composedOf, asked))]) {
    events.set(id, body === null ? null : readToldEvent(body))
  }
  const last = new Map<number, AttemptRecord>()
  for (const row of await session.all(lastAttempts, { ids })) last.set(row.delivery_id, decodeAttempt(row))
  return identifiers.map((delivery, at) => {
    const row = rows[at]
    const accepted = row === undefined ? null : acceptedAttempt(row)
    return { ...delivery, event: events.get(delivery.deliveryId) ?? null, lastAttempt: accepted ?? last.get(delivery.deliveryId) ?? null }
  })
}

async function withIdentifiers<Listed extends ListedDelivery>(
  session: Session,
  deliveries: readonly Listed[],
): Promise<readonly (Listed & { readonly identifiers: readonly string[] })[]> {
  const names = await loadNames(session, [...new Set(deliveries.map(({ parcelId }) => parcelId))])
  return deliveries.map((delivery) => ({ ...delivery, identifiers: names.get(delivery.parcelId) ?? [] }))
}
