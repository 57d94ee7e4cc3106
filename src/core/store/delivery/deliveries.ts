import type { ExpressionBuilder } from 'kysely'
import type { QueuedDelivery } from '../../domain/delivery/dispatch-round.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { type Dialect, statement } from '../statement.ts'
import type { Tables } from '../tables.ts'

const insertComposed = statement<{ sequence: number; body: Uint8Array }>()((db, p) =>
  db
    .insertInto('composed_event')
    .values({ sequence: p.sequence, body: p.body })
    .onConflict((conflict) => conflict.column('sequence').doNothing()),
)

/** Saves the bytes of an event that the relay has composed itself, unless they are already saved. */
export function enqueueComposed(session: Session, sequence: number, body: Uint8Array): void {
  session.enqueueWrite(insertComposed, { sequence, body })
}

const lastOfParcel = statement<{ endpointId: number; parcelId: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select('sequence')
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .orderBy('sequence', 'desc')
    .limit(1),
)
/** Finds a parcel's first waiting delivery. The condition on the state lets the statement use a partial index. */
const firstWaiting = statement<{ endpointId: number; parcelId: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'sequence'])
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .where('state', '<', DELIVERY_STATE.delivered)
    .orderBy('sequence')
    .limit(1),
)

/** Like `firstWaiting`, for several parcels, with one look-up in the index for each parcel. */
const firstsWaiting = statement<{ endpointId: number; parcelIds: readonly number[] }>()((db, p, { rowsOf }) =>
  db
    .selectFrom('delivery')
    .select('id')
    .where('id', 'in', (of) =>
      of
        .selectFrom(rowsOf(p.parcelIds).as('parcel_of'))
        .select((each) =>
          each
            .selectFrom('delivery as waiting')
            .select('waiting.id')
            .where('waiting.endpoint_id', '=', p.endpointId)
            .whereRef('waiting.parcel_id', '=', 'parcel_of.value')
            .where('waiting.state', '<', DELIVERY_STATE.delivered)
            .orderBy('waiting.sequence')
            .limit(1)
            .as('id'),
        ),
    ),
)

const insertDelivery = statement<{
  endpointId: number
  parcelId: number
  sequence: number
  previousSequence: number
  inboxId: number | null
  state: number
  nowMs: number
}>()((db, p) =>
  db.insertInto('delivery').values({
    endpoint_id: p.endpointId,
    parcel_id: p.parcelId,
    sequence: p.sequence,
    previous_sequence: p.previousSequence,
    inbox_id: p.inboxId,
    state: p.state,
    attempts: 0,
    queued_at_ms: p.nowMs,
    next_attempt_at_ms: p.nowMs,
  }),
)

const queued = statement<{ endpointId: number; parcelId: number; sequence: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select('id')
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .where('sequence', '=', p.sequence),
)

/** Holds deliveries back. `unindexed` makes the planner find them by id. With an index of due deliveries, it might read all of them. */
const hold = statement<{ ids: readonly number[] }>()((db, p, { oneOf, unindexed }) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.behind })
    .where('id', 'in', oneOf(p.ids))
    .where((row) => row(unindexed(row.ref('state')), '=', DELIVERY_STATE.due)),
)
/** Makes a delivery due at once. A delivery that has failed keeps the time of its retry. */
export function dueFrom(row: ExpressionBuilder<Tables, 'delivery'>, least: Dialect['least'], nowMs: number) {
  const at = row.ref('next_attempt_at_ms')
  const next = row
    .case()
    .when('attempts', '>', 0)
    .then(at)
    .else(least(at, row.val(nowMs)))
    .end()
  return { state: DELIVERY_STATE.due, next_attempt_at_ms: next }
}
const release = statement<{ ids: readonly number[]; nowMs: number }>()((db, p, { least, oneOf, unindexed }) =>
  db
    .updateTable('delivery')
    .set((row) => dueFrom(row, least, p.nowMs))
    .where('id', 'in', oneOf(p.ids))
    .where((row) => row(unindexed(row.ref('state')), '=', DELIVERY_STATE.behind)),
)

/** Queues a delivery. It is due at once, or waits behind an earlier delivery of its parcel that has not ended (DOMAIN 7.3). */
export async function queueDelivery(session: Session, delivery: QueuedDelivery): Promise<void> {
  const { endpointId, parcelId, sequence, inboxId, toldIn, nowMs } = delivery
  const queue = { endpointId: Number(endpointId), parcelId }
  if (toldIn !== null && (await session.all(queued, { ...queue, sequence: toldIn })).length > 0) return
  const [last] = await session.all(lastOfParcel, queue)
  const first = last === undefined ? null : await findFirst(session, queue)
  const isFirst = first === null || sequence < first.sequence
  if (first !== null && isFirst) await session.run(hold, { ids: [first.id] })
  const state = isFirst ? DELIVERY_STATE.due : DELIVERY_STATE.behind
  await session.run(insertDelivery, { ...queue, sequence, previousSequence: last?.sequence ?? 0, inboxId, state, nowMs })
}

const claimed = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('delivery').select(['id', 'parcel_id', 'state', 'reason']).where('id', 'in', oneOf(p.ids)),
)

/**
 * Returns which of these claimed deliveries must not be sent. Each of them has ended, was skipped, shares its parcel with another claim, or
 * comes after another delivery because parcels were joined. Reads the rows again, because a join may have moved claimed deliveries.
 */
export async function findOvertaken(session: Session, deliveryIds: readonly number[]): Promise<readonly number[]> {
  if (deliveryIds.length === 0) return []
  const rows = await session.all(claimed, { ids: deliveryIds })
  const counts = new Map<number, number>()
  for (const { parcel_id: parcelId } of rows) counts.set(parcelId, (counts.get(parcelId) ?? 0) + 1)
  const isAlone = (parcelId: number) => counts.get(parcelId) === 1
  const isFirst = (row: { state: number; reason: string | null }) => row.state === DELIVERY_STATE.due && row.reason === null
  const overtaken = rows.filter((row) => !isFirst(row) || !isAlone(row.parcel_id)).map(({ id }) => id)
  // Deliveries without a row are gone, because their parcels were erased.
  const found = new Set(rows.map(({ id }) => id))
  return [...overtaken, ...deliveryIds.filter((id) => !found.has(id))]
}

const standing = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('delivery').select('id').where('id', 'in', oneOf(p.ids)),
)

/** Returns the deliveries that are no longer stored. */
export async function findGone(session: Session, deliveryIds: readonly number[]): Promise<readonly number[]> {
  if (deliveryIds.length === 0) return []
  const found = new Set((await session.all(standing, { ids: deliveryIds })).map(({ id }) => id))
  return deliveryIds.filter((id) => !found.has(id))
}

/** Finds a waiting delivery of each endpoint by an index. With `exists`, the planner may read all waiting deliveries. */
export function waitingAt(of: ExpressionBuilder<Tables, 'endpoint'>) {
  return of
    .selectFrom('delivery')
    .select('delivery.id')
    .whereRef('delivery.endpoint_id', '=', 'endpoint.id')
    .where('delivery.state', '<', DELIVERY_STATE.delivered)
    .limit(1)
}

const unsettledRemoved = statement()((db) =>
  db
    .selectFrom('endpoint')
    .select(['id', 'removed_at_ms'])
    .where('removed_at_ms', 'is not', null)
    .where(waitingAt, 'is not', null)
    .limit(1),
)
const cancelSome = statement<{ endpointId: number; removedAtMs: number; limit: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.cancelled, reason: 'endpoint_removed', settled_at_ms: p.removedAtMs })
    .where('id', 'in', (of) =>
      of
        .selectFrom('delivery')
        .select('delivery.id')
        .where('delivery.endpoint_id', '=', p.endpointId)
        .where('delivery.state', '<', DELIVERY_STATE.delivered)
        .limit(p.limit),
    ),
)

/** Cancels a batch of waiting deliveries of removed endpoints. `isDone`: no removed endpoint has waiting deliveries. */
export async function cancelRemoved(session: Session, limit: number): Promise<{ readonly isDone: boolean }> {
  const [removed] = await session.all(unsettledRemoved, {})
  if (removed === undefined) return { isDone: true }
  await session.run(cancelSome, { endpointId: removed.id, removedAtMs: removed.removed_at_ms ?? 0, limit })
  return { isDone: false }
}

const holdOthers = statement<{ endpointId: number; parcelId: number; first: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.behind })
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .where('state', '=', DELIVERY_STATE.due)
    .where('id', '!=', p.first),
)
const moveAll = statement<{ endpointId: number; parcelId: number; ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.updateTable('delivery').set({ parcel_id: p.parcelId }).where('endpoint_id', '=', p.endpointId).where('parcel_id', 'in', oneOf(p.ids)),
)

/** Moves the deliveries of joined parcels to the parcel that holds their history now. Of the waiting deliveries, only the first becomes due. */
export async function moveDeliveries(
  session: Session,
  endpointId: number,
  join: { from: readonly number[]; into: number; nowMs: number },
): Promise<void> {
  const queue = { endpointId, parcelId: join.into }
  session.enqueueWrite(moveAll, { ...queue, ids: join.from })
  const first = await findFirst(session, queue)
  if (first === null) return
  session.enqueueWrite(holdOthers, { ...queue, first: first.id })
  session.enqueueWrite(release, { ids: [first.id], nowMs: join.nowMs })
}

async function findFirst(session: Session, queue: { readonly endpointId: number; readonly parcelId: number }) {
  const [first] = await session.all(firstWaiting, queue)
  return first ?? null
}

interface Queues {
  readonly endpointId: number
  readonly parcelIds: readonly number[]
}

/** Finds the first waiting delivery of each parcel, which is the only one that can be sent. */
export async function findFirsts(session: Session, queues: Queues): Promise<readonly number[]> {
  const rows = await session.all(firstsWaiting, { ...queues })
  return rows.map(({ id }) => id)
}

/** Makes each parcel's first waiting delivery due. Holds back the deliveries in `before` that are no longer first. */
export async function reorderDeliveries(session: Session, queues: Queues, before: readonly number[], nowMs: number): Promise<void> {
  const firsts = await findFirsts(session, queues)
  const still = new Set(firsts)
  session.enqueueWrite(hold, { ids: before.filter((id) => !still.has(id)) })
  session.enqueueWrite(release, { ids: firsts, nowMs })
}
