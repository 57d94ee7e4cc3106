import type { ReplayedBatch, ReplayRequest } from '../../domain/delivery/delivery-list.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import { type FirstDelivery, findFirst, reorderDeliveries } from './deliveries.ts'
import { copyDelivery, parcelsOfCopies } from './delivery-copies.ts'
import { findEnded } from './ended-deliveries.ts'

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
/** Requeues a delivery unless its state is below `leastState`. */
const requeue = statement<{ id: number; leastState: number; queuedAtMs: number; nowMs: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({
      state: DELIVERY_STATE.behind,
      attempts: 0,
      spared: 0,
      round: 0,
      queued_at_ms: p.queuedAtMs,
      first_failed_at_ms: null,
      next_attempt_at_ms: p.nowMs,
      reason: null,
      settled_at_ms: null,
      accepted_at_ms: null,
      accepted_duration_ms: null,
      accepted_status: null,
    })
    .where('id', '=', p.id)
    .where('state', '>=', p.leastState),
)

/**
 * Queues ended deliveries again, or queues their events for another endpoint. Each takes its place by sequence among its parcel's waiting
 * deliveries. `lock`: for engines with concurrent writers, locks the waiting deliveries of these parcels. Other writers may have queued some of
 * them before the lock is held.
 */
export async function replayDeliveries(
  session: Session,
  request: ReplayRequest,
  lock: ((parcelIds: readonly number[]) => void) | null = null,
): Promise<ReplayedBatch> {
  const { selection, after, limit, nowMs, untilMs } = request
  const endpointId = Number(request.to)
  const { ended, next } = await findEnded(session, { selection, after, limit, untilMs })
  const isCopied = request.to !== selection.endpointId
  if (lock !== null) lock(isCopied ? await parcelsOfCopies(session, ended) : ended.map(({ parcelId }) => parcelId))
  /** The first waiting delivery of each parcel before the replay. */
  const parcels = new Map<number, FirstDelivery | null>()
  let count = 0
  for (const row of ended) {
    const own = { id: row.id, parcelId: row.parcelId, isWaiting: false }
    const queued = isCopied ? await copyDelivery(session, row.id, endpointId, nowMs) : own
    if (queued === null || queued.isWaiting) continue
    const { parcelId } = queued
    if (!parcels.has(parcelId)) parcels.set(parcelId, await findFirst(session, { endpointId, parcelId }))
    await session.run(keepAccepted, { id: queued.id })
    // Queued after `untilMs`, so this replay does not find the delivery again once it has ended.
    const leastState = isCopied ? DELIVERY_STATE.behind : DELIVERY_STATE.delivered
    count += (await session.run(requeue, { id: queued.id, leastState, queuedAtMs: Math.max(nowMs, untilMs + 1), nowMs })).rows
  }
  for (const [parcelId, first] of parcels) await reorderDeliveries(session, { endpointId, parcelId }, [first], nowMs)
  return { count, next }
}
