import { sql } from 'kysely'
import type { NextDelivery, NextRequest, QueuedDelivery } from '../flow/ports.ts'
import { DELIVERY_STATE } from './codec.ts'
import type { Session } from './engine.ts'
import { oneOf, statement } from './statement.ts'

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

/** Bodies are looked up and not joined, and only of what is due: most of what waits is looked at once in vain. */
const next = statement<{ endpointId: number; held: string; limit: number; nowMs: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'parcel_id', 'sequence', 'previous_sequence', 'attempts', 'first_failed_at_ms', 'next_attempt_at_ms'])
    .select((of) =>
      of
        .case()
        .when('next_attempt_at_ms', '>', p.nowMs)
        .then(null)
        .when('inbox_id', 'is', null)
        .then(of.selectFrom('composed_event').select('composed_event.body').whereRef('composed_event.sequence', '=', 'delivery.sequence'))
        .else(of.selectFrom('inbox').select('inbox.body').whereRef('inbox.id', '=', 'delivery.inbox_id'))
        .end()
        .as('body'),
    )
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', DELIVERY_STATE.due)
    .where(sql<boolean>`id not in (select value from json_each(${p.held}))`)
    .orderBy('next_attempt_at_ms')
    .limit(p.limit),
)

/** Read off the index of what is due alone, so that it takes the same however much waits. */
export async function findNextDeliveries(
  session: Session,
  { endpointId, held, limit, nowMs }: NextRequest,
): Promise<readonly NextDelivery[]> {
  const rows = await session.all(next, { endpointId: Number(endpointId), held: JSON.stringify(held), limit, nowMs })
  return rows.map((row) => ({
    deliveryId: row.id,
    endpointId,
    parcelId: row.parcel_id,
    sequence: row.sequence,
    previousSequence: row.previous_sequence,
    attempts: row.attempts,
    firstFailedAtMs: row.first_failed_at_ms,
    dueAtMs: row.next_attempt_at_ms,
    body: row.body,
  }))
}

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

const moveAll = statement<{ endpointId: number; ids: string; into: number }>()((db, p) =>
  db.updateTable('delivery').set({ parcel_id: p.into }).where('endpoint_id', '=', p.endpointId).where('parcel_id', 'in', oneOf(p.ids)),
)
const holdBack = statement<{ endpointId: number; parcelId: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.behind })
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .where('state', '=', DELIVERY_STATE.due),
)

/** The deliveries of parcels that were joined to another: what waits for them all goes on in one order of sequence. */
export async function moveDeliveries(
  session: Session,
  endpointId: string,
  join: { from: readonly number[]; into: number; nowMs: number },
): Promise<void> {
  const id = Number(endpointId)
  await session.run(moveAll, { endpointId: id, ids: JSON.stringify(join.from), into: join.into })
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
