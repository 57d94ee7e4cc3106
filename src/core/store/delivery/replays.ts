import { CLOCK_SETTING, decodeClockRecord } from '../../domain/admin/clock-record.ts'
import type { ReplayedBatch, ReplayRequest } from '../../domain/delivery/delivery-list.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { loadSetting } from '../settings.ts'
import { statement } from '../statement.ts'
import { findFirsts, reorderDeliveries } from './deliveries.ts'
import { findCopies, findSame, insertCopies } from './delivery-copies.ts'
import { findEnded, isByTime } from './ended-deliveries.ts'

const keepAccepted = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .insertInto('attempt')
    .columns(['delivery_id', 'at_ms', 'duration_ms', 'status', 'address'])
    .expression((of) =>
      of
        .selectFrom('delivery')
        .select(['id', 'accepted_at_ms', 'accepted_duration_ms', 'accepted_status', 'accepted_address'])
        .where('id', 'in', oneOf(p.ids))
        .where('accepted_at_ms', 'is not', null)
        .$narrowType<{ accepted_at_ms: number; accepted_duration_ms: number }>(),
    ),
)
/** The condition on the state leaves out deliveries that another request has queued again meanwhile. */
const requeue = statement<{ ids: readonly number[]; queuedAtMs: number; nowMs: number; livedMs: number }>()((db, p, { oneOf, unindexed }) =>
  db
    .updateTable('delivery')
    .set({
      state: DELIVERY_STATE.behind,
      attempts: 0,
      spared: 0,
      limited: 0,
      round: 0,
      queued_at_ms: p.queuedAtMs,
      first_failed_at_ms: null,
      next_attempt_at_ms: p.nowMs,
      reason: null,
      settled_at_ms: null,
      accepted_at_ms: null,
      accepted_duration_ms: null,
      accepted_status: null,
      accepted_address: null,
      queued_lived_ms: p.livedMs,
    })
    .where('id', 'in', oneOf(p.ids))
    .where((row) => row(unindexed(row.ref('state')), '>=', DELIVERY_STATE.delivered)),
)

/**
 * Queues ended deliveries again, or queues their events for another endpoint. Each delivery takes its place by sequence among the waiting
 * deliveries of its parcel.
 *
 * `lock` locks the waiting deliveries of parcels; null: the engine has a single writer. Each `await` is a round trip during
 * which the locks are held, so their number does not grow with the number of deliveries.
 */
export async function replayDeliveries(
  session: Session,
  request: ReplayRequest,
  lock: ((parcelIds: readonly number[]) => void) | null = null,
): Promise<ReplayedBatch> {
  const { selection, after, limit, nowMs, untilMs } = request
  const endpointId = Number(request.to)
  const { ended, next } = await findEnded(session, { selection, after, limit, untilMs })
  if (ended.length === 0) return { count: 0, next }
  const copies = request.to === selection.endpointId ? null : await findCopies(session, ended)
  const parcelIds = [...new Set((copies ?? ended).map(({ parcelId }) => parcelId))]
  if (lock !== null) lock(parcelIds)
  const [firsts, clock, { endedIds, missing }] = await Promise.all([
    findFirsts(session, { endpointId, parcelIds }),
    loadSetting(session, CLOCK_SETTING),
    copies === null
      ? { endedIds: ended.map(({ id }) => id), missing: [] }
      : findSame(session, { endpointId, untilMs: isByTime(selection) ? untilMs : Number.MAX_SAFE_INTEGER }, copies),
  ])
  // The time of queuing is after `untilMs`, so that this replay does not select the deliveries again when they have ended.
  const times = { queuedAtMs: Math.max(nowMs, untilMs + 1), nowMs }
  session.enqueueWrite(keepAccepted, { ids: endedIds })
  const [requeued, inserted] = await Promise.all([
    session.run(requeue, { ids: endedIds, ...times, livedMs: decodeClockRecord(clock)?.livedMs ?? 0 }),
    insertCopies(session, missing, { endpointId, ...times }),
  ])
  await reorderDeliveries(session, { endpointId, parcelIds }, firsts, nowMs)
  return { count: requeued.rows + inserted, next }
}
