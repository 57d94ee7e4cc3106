import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import { survivorOf } from './read-feed.ts'

const one = statement<{ id: number }>()((db, p) =>
  db.selectFrom('delivery').select(['parcel_id', 'sequence', 'inbox_id']).where('id', '=', p.id),
)
const sameEvent = statement<{ endpointId: number; parcelId: number; sequence: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'state'])
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .where('sequence', '=', p.sequence),
)
const before = statement<{ endpointId: number; parcelId: number; sequence: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select('sequence')
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .where('sequence', '<', p.sequence)
    .orderBy('sequence', 'desc')
    .limit(1),
)
const insertBehind = statement<{
  endpointId: number
  parcelId: number
  sequence: number
  previousSequence: number
  inboxId: number | null
  nowMs: number
}>()((db, p) =>
  db
    .insertInto('delivery')
    .values({
      endpoint_id: p.endpointId,
      parcel_id: p.parcelId,
      sequence: p.sequence,
      previous_sequence: p.previousSequence,
      inbox_id: p.inboxId,
      state: DELIVERY_STATE.behind,
      attempts: 0,
      queued_at_ms: p.nowMs,
      next_attempt_at_ms: p.nowMs,
    })
    .returning('id'),
)

export interface Copied {
  /** The delivery at the other endpoint. If it has ended, the caller queues it again. */
  readonly id: number
  readonly parcelId: number
  readonly isWaiting: boolean
}

/** Returns the parcels that the copies of these deliveries will belong to. */
export async function parcelsOfCopies(session: Session, deliveries: readonly { readonly id: number }[]): Promise<readonly number[]> {
  const parcelIds = new Set<number>()
  for (const { id } of deliveries) {
    const [row] = await session.all(one, { id })
    if (row !== undefined) parcelIds.add(await survivorOf(session, row.parcel_id, row.sequence))
  }
  return [...parcelIds]
}

/** Finds the delivery of the same event at another endpoint; if there is none, inserts one in state `behind`. */
export async function copyDelivery(session: Session, id: number, endpointId: number, nowMs: number): Promise<Copied | null> {
  const [row] = await session.all(one, { id })
  if (row === undefined) return null
  const { sequence, inbox_id: inboxId } = row
  // A join does not move the deliveries of removed endpoints, so the row may name a parcel that no longer exists.
  const parcelId = await survivorOf(session, row.parcel_id, sequence)
  const [same] = await session.all(sameEvent, { endpointId, parcelId, sequence })
  if (same !== undefined) {
    return { id: same.id, parcelId, isWaiting: same.state === DELIVERY_STATE.behind || same.state === DELIVERY_STATE.due }
  }
  const [last] = await session.all(before, { endpointId, parcelId, sequence })
  const [made] = await session.all(insertBehind, { endpointId, parcelId, sequence, previousSequence: last?.sequence ?? 0, inboxId, nowMs })
  return made === undefined ? null : { id: made.id, parcelId, isWaiting: false }
}
