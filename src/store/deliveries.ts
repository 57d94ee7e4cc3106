import type { Settlement } from '../domain/delivery.ts'
import type { AttemptRecord, ClaimedDelivery, DeliveryRef, NextDelivery, QueuedDelivery } from '../flow/ports.ts'
import { DELIVERY_STATE } from './codec.ts'
import type { Session } from './engine.ts'
import { statement } from './statement.ts'

const insertComposed = statement<{ sequence: number; body: Uint8Array }>()((db, p) =>
  db
    .insertInto('composed_event')
    .values({ sequence: p.sequence, body: p.body })
    .onConflict((conflict) => conflict.column('sequence').doNothing()),
)

export async function saveComposedEvent(session: Session, sequence: number, body: Uint8Array): Promise<void> {
  await session.run(insertComposed, { sequence, body })
}

const lastOfParcel = statement<{ endpointId: number; parcelId: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['sequence', 'state'])
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .orderBy('sequence', 'desc')
    .limit(1),
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

/** Due at once, or behind an earlier delivery of its parcel that has not ended (DOMAIN 7.3). */
export async function queueDelivery(session: Session, { endpointId, parcelId, sequence, inboxId, nowMs }: QueuedDelivery): Promise<void> {
  const [last] = await session.all(lastOfParcel, { endpointId: Number(endpointId), parcelId })
  const mustWait = last !== undefined && (last.state === DELIVERY_STATE.due || last.state === DELIVERY_STATE.behind)
  await session.run(insertDelivery, {
    endpointId: Number(endpointId),
    parcelId,
    sequence,
    previousSequence: last?.sequence ?? 0,
    inboxId,
    state: mustWait ? DELIVERY_STATE.behind : DELIVERY_STATE.due,
    nowMs,
  })
}

const next = statement<{ endpointId: number; limit: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'next_attempt_at_ms'])
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', DELIVERY_STATE.due)
    .orderBy('next_attempt_at_ms')
    .limit(p.limit),
)

/** Read off the index of what is due alone, so that it takes the same however much waits. */
export async function findNextDeliveries(
  session: Session,
  { endpointId, limit }: { readonly endpointId: string; readonly limit: number },
): Promise<readonly NextDelivery[]> {
  const rows = await session.all(next, { endpointId: Number(endpointId), limit })
  return rows.map((row) => ({ deliveryId: row.id, dueAtMs: row.next_attempt_at_ms }))
}

/** No join: the driver's SQLite would plan it anew each time, which takes longer than running it. */
const withPush = statement<{ id: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['endpoint_id', 'parcel_id', 'sequence', 'previous_sequence', 'attempts', 'first_failed_at_ms', 'inbox_id'])
    .select((of) => of.selectFrom('inbox').select('inbox.body').whereRef('inbox.id', '=', 'delivery.inbox_id').as('body'))
    .where('id', '=', p.id),
)
const composed = statement<{ sequence: number }>()((db, p) =>
  db.selectFrom('composed_event').select('body').where('sequence', '=', p.sequence),
)

export async function loadDelivery(session: Session, deliveryId: number): Promise<ClaimedDelivery> {
  const [row] = await session.all(withPush, { id: deliveryId })
  if (row === undefined) throw new Error('a delivery that is due is not there')
  const { sequence, inbox_id: inboxId, body: pushed } = row
  return {
    deliveryId,
    endpointId: String(row.endpoint_id),
    parcelId: row.parcel_id,
    sequence,
    previousSequence: row.previous_sequence,
    attempts: row.attempts,
    firstFailedAtMs: row.first_failed_at_ms,
    body: inboxId === null ? ((await session.all(composed, { sequence }))[0]?.body ?? null) : pushed,
  }
}

const insertAttempt = statement<{
  deliveryId: number
  atMs: number
  durationMs: number
  status: number | null
  reason: string | null
  answer: Uint8Array | null
}>()((db, p) =>
  db.insertInto('attempt').values({
    delivery_id: p.deliveryId,
    at_ms: p.atMs,
    duration_ms: p.durationMs,
    status: p.status,
    reason: p.reason,
    answer: p.answer,
  }),
)

export async function saveAttempt(session: Session, { deliveryId, atMs, result }: AttemptRecord): Promise<void> {
  await session.run(insertAttempt, {
    deliveryId,
    atMs,
    durationMs: Math.round(result.durationMs),
    status: result.kind === 'failed' ? null : result.status,
    reason: result.kind === 'failed' ? result.reason : null,
    answer: result.answerStart.byteLength === 0 ? null : result.answerStart,
  })
}

const retry = statement<{ id: number; attempts: number; firstFailedAtMs: number | null; nextAttemptAtMs: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ attempts: p.attempts, first_failed_at_ms: p.firstFailedAtMs, next_attempt_at_ms: p.nextAttemptAtMs })
    .where('id', '=', p.id),
)
const end = statement<{ id: number; attempts: number; state: number; reason: string | null; nowMs: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ attempts: p.attempts, state: p.state, reason: p.reason, settled_at_ms: p.nowMs })
    .where('id', '=', p.id)
    .where('state', '!=', DELIVERY_STATE.cancelled)
    .returning('parcel_id'),
)
const releaseFirstOf = statement<{ endpointId: number; parcelId: number; nowMs: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.due, next_attempt_at_ms: p.nowMs })
    .where('state', '=', DELIVERY_STATE.behind)
    .where('id', '=', (of) =>
      of
        .selectFrom('delivery as first')
        .select('first.id')
        .where('first.endpoint_id', '=', p.endpointId)
        .where('first.parcel_id', '=', p.parcelId)
        .where('first.state', 'in', [DELIVERY_STATE.behind, DELIVERY_STATE.due])
        .orderBy('first.sequence')
        .limit(1),
    ),
)

export interface Settled {
  readonly delivery: DeliveryRef
  readonly settlement: Settlement
  readonly nowMs: number
}

/** Held deliveries stay due: what holds them is that their endpoint is disabled. */
export async function saveSettlement(session: Session, { delivery, settlement, nowMs }: Settled): Promise<void> {
  const { deliveryId: id, attempts, firstFailedAtMs } = delivery
  if (settlement.state === 'retrying' || settlement.state === 'held') {
    const nextAttemptAtMs = settlement.state === 'retrying' ? settlement.nextAttemptAtMs : nowMs
    await session.run(retry, { id, attempts, firstFailedAtMs, nextAttemptAtMs })
    return
  }
  const reason = settlement.state === 'dead' ? settlement.reason : null
  const [ended] = await session.all(end, { id, attempts, state: DELIVERY_STATE[settlement.state], reason, nowMs })
  // Of the parcel as it is now: while it was attempted, its parcel may have been joined to another.
  if (ended !== undefined) await releaseFirst(session, Number(delivery.endpointId), ended.parcel_id, nowMs)
}

/** The earliest delivery of a parcel that has not ended may go. */
async function releaseFirst(session: Session, endpointId: number, parcelId: number, nowMs: number): Promise<void> {
  await session.run(releaseFirstOf, { endpointId, parcelId, nowMs })
}

const cancel = statement<{ endpointId: number; nowMs: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.cancelled, reason: 'endpoint_removed', settled_at_ms: p.nowMs })
    .where('endpoint_id', '=', p.endpointId)
    .where('state', 'in', [DELIVERY_STATE.behind, DELIVERY_STATE.due]),
)

/** What waits for an endpoint that is removed is kept, as cancelled. */
export async function cancelDeliveries(session: Session, endpointId: string, nowMs: number): Promise<void> {
  await session.run(cancel, { endpointId: Number(endpointId), nowMs })
}

const moveAll = statement<{ endpointId: number; from: number; into: number }>()((db, p) =>
  db.updateTable('delivery').set({ parcel_id: p.into }).where('endpoint_id', '=', p.endpointId).where('parcel_id', '=', p.from),
)
const holdBack = statement<{ endpointId: number; parcelId: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.behind })
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .where('state', '=', DELIVERY_STATE.due),
)

/** The deliveries of a parcel that was joined to another: what waits for both goes on in one order of sequence. */
export async function moveDeliveries(
  session: Session,
  endpointId: string,
  join: { from: number; into: number; nowMs: number },
): Promise<void> {
  const id = Number(endpointId)
  await session.run(moveAll, { endpointId: id, from: join.from, into: join.into })
  await reorderDeliveries(session, { endpointId: id, parcelId: join.into, nowMs: join.nowMs })
}

/** Of what waits for a parcel only the first may go. */
export async function reorderDeliveries(
  session: Session,
  { endpointId, parcelId, nowMs }: { readonly endpointId: number; readonly parcelId: number; readonly nowMs: number },
): Promise<void> {
  await session.run(holdBack, { endpointId, parcelId })
  await releaseFirst(session, endpointId, parcelId, nowMs)
}
