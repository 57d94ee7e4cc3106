import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { DeliveryPage, DeliveryQuery, DeliverySelection, MadeAttempt, ReadSide, ReplayRequest } from '../flow/ports.ts'
import { DELIVERY_STATE, type DeliveryRow, decodeDelivery } from './codec.ts'
import { type FirstDelivery, findFirst, reorderDeliveries } from './deliveries.ts'
import { copyDelivery } from './delivery-copies.ts'
import { findSentEvent, withIdentifiers } from './delivery-view.ts'
import type { Session } from './engine.ts'
import type { Tables } from './schema.ts'
import { statement } from './statement.ts'

/** How many deliveries one page looks at: those of a rare state would otherwise take a walk through all there are. */
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

const wanted = (db: Kysely<Tables>, p: Wanted) =>
  db
    .selectFrom('delivery')
    .innerJoin('endpoint', 'endpoint.id', 'delivery.endpoint_id')
    .selectAll('delivery')
    .select(['endpoint.name as endpoint_name', 'endpoint.disabled'])
    .where('delivery.id', '<', p.before)
    .where(isAny(sql.ref('delivery.endpoint_id'), p.endpointId))
    .where('delivery.state', '>=', p.a)
    .where('delivery.state', '<=', p.b)
    .where(isAny(sql`(endpoint.disabled is not null)`, p.held))
    .where(isAny(sql`(delivery.attempts > 0)`, p.tried))
    .orderBy('delivery.id', 'desc')
    .limit(p.limit)

const page = statement<Wanted & { readonly from: number }>()((db, p) => wanted(db, p).where('delivery.id', '>=', p.from))
// By the index of each endpoint's deliveries of a parcel: a parcel has few.
const pageOfParcel = statement<Wanted & { readonly parcelId: number }>()((db, p) =>
  wanted(db, p)
    .where('delivery.endpoint_id', 'in', (of) => of.selectFrom('endpoint').select('endpoint.id'))
    .where('delivery.parcel_id', '=', p.parcelId),
)

/** Null: of any value. */
function isAny(column: RawBuilder<unknown>, value: number | null): RawBuilder<boolean> {
  return sql<boolean>`(${value} is null or ${column} = ${value})`
}

const { behind, due } = DELIVERY_STATE
/** What a state asked for is in the table. */
const STATES: Readonly<Record<NonNullable<DeliveryQuery['state']>, { a: number; b: number; held: number | null; tried: number | null }>> = {
  queued: { a: behind, b: due, held: 0, tried: 0 },
  retrying: { a: behind, b: due, held: 0, tried: 1 },
  held: { a: behind, b: due, held: 1, tried: null },
  delivered: { a: DELIVERY_STATE.delivered, b: DELIVERY_STATE.delivered, held: null, tried: null },
  dead: { a: DELIVERY_STATE.dead, b: DELIVERY_STATE.dead, held: null, tried: null },
  cancelled: { a: DELIVERY_STATE.cancelled, b: DELIVERY_STATE.cancelled, held: null, tried: null },
}
const ANY_STATE = { a: behind, b: DELIVERY_STATE.cancelled, held: null, tried: null }

/** The newest first. */
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
    .select(['endpoint.name as endpoint_name', 'endpoint.disabled'])
    .where('delivery.id', '=', p.id),
)
const attemptsOf = statement<{ id: number }>()((db, p) =>
  db.selectFrom('attempt').selectAll().where('delivery_id', '=', p.id).orderBy('id', 'desc').limit(1000),
)

/** With its attempts, the last one first; null: there is none. */
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

/** It is the last one: an accepted delivery is attempted no more, and what is queued again moves it to the others. */
function acceptedAttempt(row: Pick<DeliveryRow, 'accepted_at_ms' | 'accepted_duration_ms' | 'accepted_status'>): readonly MadeAttempt[] {
  const { accepted_at_ms: atMs, accepted_duration_ms: durationMs, accepted_status: status } = row
  if (atMs === null) return []
  return [{ atMs, durationMs: durationMs ?? 0, status, reason: null, answerStart: new Uint8Array() }]
}

type Selected = {
  a: number
  b: number
  c: number
  endpointId: number
  fromSequence: number
  fromMs: number
  id: number | null
  sequence: number | null
  parcelId: number | null
}

function selected(selection: DeliverySelection): Selected {
  const [a = -1, b = a, c = a] = selection.states.map((state) => DELIVERY_STATE[state])
  const { endpointId, fromSequence, fromMs, deliveryId, sequence, parcelId } = selection
  return { a, b, c, endpointId: Number(endpointId), fromSequence, fromMs, id: deliveryId, sequence, parcelId }
}

const matches = (p: Selected) =>
  sql<boolean>`endpoint_id = ${p.endpointId} and state in (${p.a}, ${p.b}, ${p.c}) and sequence >= ${p.fromSequence} and queued_at_ms >= ${p.fromMs}
    and (${p.id} is null or id = ${p.id}) and (${p.sequence} is null or sequence = ${p.sequence}) and (${p.parcelId} is null or parcel_id = ${p.parcelId})`

const countSelected = statement<Selected>()((db, p) =>
  db
    .selectFrom('delivery')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where(matches(p)),
)
const someSelected = statement<Selected & { after: number; limit: number }>()((db, p) =>
  db.selectFrom('delivery').select(['id', 'parcel_id']).where(matches(p)).where('id', '>', p.after).orderBy('id').limit(p.limit),
)
const keepAccepted = statement<{ id: number }>()((db, p) =>
  db
    .insertInto('attempt')
    .columns(['delivery_id', 'at_ms', 'duration_ms', 'status'])
    .expression((of) =>
      of
        .selectFrom('delivery')
        .select(['id', 'accepted_at_ms', 'accepted_duration_ms', 'accepted_status'])
        .where('id', '=', p.id)
        .where('accepted_at_ms', 'is not', null)
        .$narrowType<{ accepted_at_ms: number; accepted_duration_ms: number }>(),
    ),
)
const requeue = statement<{ id: number; nowMs: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({
      state: behind,
      attempts: 0,
      queued_at_ms: p.nowMs,
      first_failed_at_ms: null,
      next_attempt_at_ms: p.nowMs,
      reason: null,
      settled_at_ms: null,
      accepted_at_ms: null,
      accepted_duration_ms: null,
      accepted_status: null,
    })
    .where('id', '=', p.id),
)

export async function countReplayable(session: Session, selection: DeliverySelection): Promise<number> {
  const [row] = await session.all(countSelected, selected(selection))
  return row?.count ?? 0
}

/** Queues ended deliveries again, or their events for another endpoint, each in its parcel's order: what waits there with a later sequence comes after it. */
export async function replayDeliveries(
  session: Session,
  request: ReplayRequest,
): Promise<{ readonly count: number; readonly last: number | null }> {
  const { selection, after, limit, nowMs } = request
  const endpointId = Number(request.to)
  const rows = await session.all(someSelected, { ...selected(selection), after, limit })
  /** What was the first of a parcel before. */
  const parcels = new Map<number, FirstDelivery | null>()
  let count = 0
  for (const row of rows) {
    const own = { id: row.id, parcelId: row.parcel_id, isWaiting: false }
    const queued = request.to === selection.endpointId ? own : await copyDelivery(session, row.id, endpointId, nowMs)
    if (queued === null || queued.isWaiting) continue
    const { parcelId } = queued
    if (!parcels.has(parcelId)) parcels.set(parcelId, await findFirst(session, { endpointId, parcelId }))
    await session.run(keepAccepted, { id: queued.id })
    await session.run(requeue, { id: queued.id, nowMs })
    count += 1
  }
  for (const [parcelId, first] of parcels) await reorderDeliveries(session, { endpointId, parcelId }, [first], nowMs)
  return { count, last: rows.length < limit ? null : (rows.at(-1)?.id ?? null) }
}
