import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { AttemptRecord, DeliveryPage, DeliveryQuery } from '../../domain/delivery/delivery-list.ts'
import type { ReadSide } from '../../flow/read-side.ts'
import { DELIVERY_STATE, type DeliveryRow, decodeDelivery } from '../codec.ts'
import type { Session } from '../engine.ts'
import type { Tables } from '../schema.ts'
import { type Dialect, statement } from '../statement.ts'
import { findSentEvent, withIdentifiers } from './delivery-view.ts'

/** How many deliveries one page may scan: a rare state would otherwise require a full scan. */
const LOOKED_AT_MAX = 50_000

const newest = statement()((db) => db.selectFrom('delivery').select('id').orderBy('id', 'desc').limit(1))

type Wanted = {
  readonly before: number
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
    .where('delivery.id', '<', p.before)
    .where(isAny(sql.ref('delivery.endpoint_id'), integer(p.endpointId)))
    .where(stateNow, '>=', p.a)
    .where(stateNow, '<=', p.b)
    .where(isAny(sql`(case when endpoint.disabled is null then 0 else 1 end)`, integer(p.held)))
    .where(isAny(sql`(case when delivery.attempts > 0 then 1 else 0 end)`, integer(p.tried)))
    .orderBy('delivery.id', 'desc')
    .limit(p.limit)

const page = statement<Wanted & { readonly from: number }>()((db, p, dialect) => wanted(db, p, dialect).where('delivery.id', '>=', p.from))
// Uses the index by endpoint and parcel: one parcel has few deliveries.
const pageOfParcel = statement<Wanted & { readonly parcelId: number }>()((db, p, dialect) =>
  wanted(db, p, dialect)
    .where('delivery.endpoint_id', 'in', (of) => of.selectFrom('endpoint').select('endpoint.id'))
    .where('delivery.parcel_id', '=', p.parcelId),
)

/** A null value matches everything. */
function isAny(column: RawBuilder<unknown>, value: RawBuilder<number>): RawBuilder<boolean> {
  return sql<boolean>`(${value} is null or ${column} = ${value})`
}

const { behind, due } = DELIVERY_STATE
/** How each state of a query is stored in the table. */
const STATES: Readonly<Record<NonNullable<DeliveryQuery['state']>, { a: number; b: number; held: number | null; tried: number | null }>> = {
  queued: { a: behind, b: due, held: 0, tried: 0 },
  retrying: { a: behind, b: due, held: 0, tried: 1 },
  held: { a: behind, b: due, held: 1, tried: null },
  delivered: { a: DELIVERY_STATE.delivered, b: DELIVERY_STATE.delivered, held: null, tried: null },
  dead: { a: DELIVERY_STATE.dead, b: DELIVERY_STATE.dead, held: null, tried: null },
  cancelled: { a: DELIVERY_STATE.cancelled, b: DELIVERY_STATE.cancelled, held: null, tried: null },
}
const ANY_STATE = { a: behind, b: DELIVERY_STATE.cancelled, held: null, tried: null }

/** Lists deliveries, newest first. */
export async function listDeliveries(session: Session, query: DeliveryQuery): Promise<DeliveryPage> {
  const [last] = await session.all(newest, {})
  const before = query.before ?? (last?.id ?? 0) + 1
  const { parcelId, limit } = query
  const from = parcelId === null ? Math.max(1, before - LOOKED_AT_MAX) : 1
  const state = query.state === null ? ANY_STATE : STATES[query.state]
  const asked = { ...state, endpointId: query.endpointId === null ? null : Number(query.endpointId), before, limit }
  const rows = parcelId === null ? await session.all(page, { ...asked, from }) : await session.all(pageOfParcel, { ...asked, parcelId })
  const lastShown = rows.length < query.limit ? from : (rows.at(-1)?.id ?? from)
  return { deliveries: await withIdentifiers(session, rows.map(decodeDelivery)), next: lastShown > 1 ? lastShown : null }
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

/** Loads a delivery with its attempts, newest first; null if there is no such delivery. */
export async function findDelivery(session: Session, id: number): Promise<Awaited<ReturnType<ReadSide['findDelivery']>>> {
  const [row] = await session.all(one, { id })
  if (row === undefined) return null
  const attempts = (await session.all(attemptsOf, { id })).map((attempt) => ({
    atMs: attempt.at_ms,
    durationMs: attempt.duration_ms,
    status: attempt.status,
    reason: attempt.reason,
    answerStart: attempt.answer ?? new Uint8Array(),
  }))
  const [delivery] = await withIdentifiers(session, [decodeDelivery(row)])
  if (delivery === undefined) return null
  return { delivery, attempts: [...acceptedAttempt(row), ...attempts], sent: await findSentEvent(session, id) }
}

/** The accepted attempt is always the newest: nothing follows it unless the delivery is replayed, and a replay moves it to table `attempt`. */
function acceptedAttempt(row: Pick<DeliveryRow, 'accepted_at_ms' | 'accepted_duration_ms' | 'accepted_status'>): readonly AttemptRecord[] {
  const { accepted_at_ms: atMs, accepted_duration_ms: durationMs, accepted_status: status } = row
  if (atMs === null) return []
  return [{ atMs, durationMs: durationMs ?? 0, status, reason: null, answerStart: new Uint8Array() }]
}
