import type { ClaimRef, Settled } from '../../domain/delivery/dispatch-round.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { rowOf, statement } from '../statement.ts'
import { COLUMNS, type RowOf } from '../tables.ts'
import { dueFrom } from './deliveries.ts'

const { id: _id, ...ATTEMPT } = COLUMNS.attempt
const insertAttempt = statement<RowOf<typeof ATTEMPT>>()((db, p) => db.insertInto('attempt').values(rowOf(ATTEMPT, p)))
/** Limited, because a delivery can be retried for years. */
const ATTEMPTS_KEPT = 50
/** Deletes a delivery's oldest attempts. If the delivery was erased during an attempt, all of them are deleted. */
const forgetAttempts = statement<{ deliveryId: number }>()((db, p) =>
  db
    .deleteFrom('attempt')
    .where('delivery_id', '=', p.deliveryId)
    .where((of) =>
      of.or([
        of(
          'id',
          '<=',
          of
            .selectFrom('attempt as kept')
            .select('kept.id')
            .where('kept.delivery_id', '=', p.deliveryId)
            .orderBy('kept.id', 'desc')
            .limit(1)
            .offset(ATTEMPTS_KEPT),
        ),
        of.not(of.exists(of.selectFrom('delivery').select('delivery.id').where('delivery.id', '=', p.deliveryId))),
      ]),
    ),
)
/** This statement and the next two change nothing if the delivery has ended during the attempt. */
const retry = statement<{
  id: number
  attempts: number
  spared: number
  limited: number
  round: number
  firstFailedAtMs: number | null
  nextAttemptAtMs: number
}>()((db, p) =>
  db
    .updateTable('delivery')
    .set({
      attempts: p.attempts,
      spared: p.spared,
      limited: p.limited,
      round: p.round,
      first_failed_at_ms: p.firstFailedAtMs,
      next_attempt_at_ms: p.nextAttemptAtMs,
    })
    .where('id', '=', p.id)
    .where('state', 'in', UNENDED),
)
/** If the delivery was skipped during its last attempt, the reason `skipped` stays. */
const giveUp = statement<{ id: number; attempts: number; reason: string; nowMs: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set((row) => ({
      attempts: p.attempts,
      state: DELIVERY_STATE.dead,
      reason: row.fn.coalesce('reason', row.val(p.reason)),
      settled_at_ms: p.nowMs,
    }))
    .where('id', '=', p.id)
    .where('state', 'in', UNENDED),
)
/** If the answer has a body, the attempt is stored in the table `attempt`, and the last four parameters are null. */
const accept = statement<{
  id: number
  attempts: number
  nowMs: number
  atMs: number | null
  durationMs: number | null
  status: number | null
  address: string | null
}>()((db, p) =>
  db
    .updateTable('delivery')
    .set({
      attempts: p.attempts,
      state: DELIVERY_STATE.delivered,
      reason: null,
      settled_at_ms: p.nowMs,
      accepted_at_ms: p.atMs,
      accepted_duration_ms: p.durationMs,
      accepted_status: p.status,
      accepted_address: p.address,
    })
    .where('id', '=', p.id)
    .where('state', 'in', UNENDED),
)

/**
 * Makes the first waiting delivery of a parcel due, after the delivery `id` of the parcel has ended. Reads the parcel from the ended row,
 * because a join may have moved the delivery to another parcel.
 *
 * The time of queuing becomes the due time, so older deliveries go first. A delivery that has failed keeps the time of its retry.
 */
const releaseFirst = statement<{ id: number; nowMs: number }>()((db, p, { least }) =>
  db
    .updateTable('delivery')
    .set((row) => dueFrom(row, least, p.nowMs))
    .where('state', '=', DELIVERY_STATE.behind)
    .where('id', '=', (of) =>
      of
        .selectFrom('delivery as ended')
        .innerJoin('delivery as first', (join) =>
          join.onRef('first.endpoint_id', '=', 'ended.endpoint_id').onRef('first.parcel_id', '=', 'ended.parcel_id'),
        )
        .select('first.id')
        .where('ended.id', '=', p.id)
        .where('first.state', '<', DELIVERY_STATE.delivered)
        .orderBy('first.sequence')
        .limit(1),
    ),
)

const cancelAll = statement<{ ids: readonly number[]; nowMs: number }>()((db, p, { oneOf, unindexed }) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.cancelled, reason: 'held_too_long', settled_at_ms: p.nowMs })
    .where('id', 'in', oneOf(p.ids))
    .where((row) => row(unindexed(row.ref('state')), 'in', UNENDED)),
)

/** Cancels deliveries that have waited longer than `retention.held`. The caller must make the next deliveries of their parcels due. */
export function cancelWaiting(session: Session, ids: readonly number[], nowMs: number): void {
  session.enqueueWrite(cancelAll, { ids, nowMs })
}

/** Like `cancelWaiting`, but also makes the next deliveries of their parcels due. */
export function cancelEach(session: Session, ids: readonly number[], nowMs: number): void {
  cancelWaiting(session, ids, nowMs)
  for (const id of ids) session.enqueueWrite(releaseFirst, { id, nowMs })
}

/** See `WriteTx.saveSettlements`. A held delivery stays in the state `due`. It is not sent, because its endpoint is disabled. */
export function saveSettlements(session: Session, settled: readonly Settled[], skipped: readonly ClaimRef[], nowMs: number): void {
  for (const one of settled) {
    const { deliveryId: id, attempts, result, atMs } = one
    if (isPlainlyAccepted(one)) {
      const { durationMs, address = null } = result
      session.enqueueWrite(accept, { id, attempts, nowMs, atMs, durationMs: Math.round(durationMs), status: one.result.status, address })
    } else saveAttempted(session, one, nowMs)
    if (hasEnded(one)) session.enqueueWrite(releaseFirst, { id, nowMs })
  }
  if (skipped.length === 0) return
  session.enqueueWrite(endSkipped, { ids: skipped.map(({ deliveryId }) => deliveryId), nowMs })
  for (const { deliveryId: id } of skipped) session.enqueueWrite(releaseFirst, { id, nowMs })
}

export function hasEnded({ settlement }: Settled): boolean {
  return settlement.state !== 'retrying' && settlement.state !== 'held'
}

/** Whether a delivery was accepted with an empty answer. Such an attempt is stored in the delivery's own row. */
export function isPlainlyAccepted(one: Settled): one is Settled & { readonly result: Extract<Settled['result'], { kind: 'accepted' }> } {
  return one.result.kind === 'accepted' && one.result.answerStart.byteLength === 0
}

/** Saves an attempt and the resulting state. If the delivery has ended, the caller must make the parcel's next delivery due. */
export function saveAttempted(session: Session, one: Settled, nowMs: number): void {
  const { deliveryId: id, attempts, spared, limited, round, firstFailedAtMs, settlement } = one
  saveAttempt(session, one)
  if (settlement.state === 'delivered') {
    session.enqueueWrite(accept, { id, attempts, nowMs, atMs: null, durationMs: null, status: null, address: null })
  } else if (settlement.state === 'dead') {
    session.enqueueWrite(giveUp, { id, attempts, reason: settlement.reason, nowMs })
  } else {
    const nextAttemptAtMs = settlement.state === 'retrying' ? settlement.nextAttemptAtMs : nowMs
    session.enqueueWrite(retry, { id, attempts, spared, limited, round, firstFailedAtMs, nextAttemptAtMs })
  }
}

function saveAttempt(session: Session, { deliveryId, atMs, result }: Settled): void {
  session.enqueueWrite(insertAttempt, {
    delivery_id: deliveryId,
    at_ms: atMs,
    duration_ms: Math.round(result.durationMs),
    status: result.kind === 'failed' ? null : result.status,
    reason: result.kind === 'failed' ? result.reason : null,
    answer: result.answerStart.byteLength === 0 ? null : result.answerStart,
    address: result.address ?? null,
  })
  session.enqueueWrite(forgetAttempts, { deliveryId })
}

/**
 * The value of the column `reason` that marks a waiting delivery to be skipped. Waiting deliveries use this column for nothing else. The mark
 * is stored because another replica may be sending the delivery, and because the relay may be killed before the attempt ends.
 */
const SKIPPED = 'skipped'
const UNENDED = [DELIVERY_STATE.behind, DELIVERY_STATE.due]

const mark = statement<{ id: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ reason: SKIPPED })
    .where('id', '=', p.id)
    .where('state', 'in', UNENDED)
    .where('endpoint_id', 'in', (of) => of.selectFrom('endpoint').select('endpoint.id').where('removed_at_ms', 'is', null)),
)
const one = statement<{ id: number }>()((db, p) => db.selectFrom('delivery').select('id').where('id', '=', p.id))

/** Marks a waiting delivery as skipped, so that it is no longer claimed. `ended`: it has ended already. Null: there is no such delivery. */
export async function skipDelivery(session: Session, id: number): Promise<'done' | 'ended' | null> {
  if ((await session.run(mark, { id })).rows > 0) return 'done'
  const [found] = await session.all(one, { id })
  return found === undefined ? null : 'ended'
}

const unmark = statement<{ id: number }>()((db, p) =>
  db.updateTable('delivery').set({ reason: null }).where('id', '=', p.id).where('state', 'in', UNENDED),
)

export function unskipDelivery(session: Session, id: number): void {
  session.enqueueWrite(unmark, { id })
}

/** The first condition on the state looks superfluous, but is the condition of the partial index. Without it the index would not be used. */
const marked = statement()((db) =>
  db
    .selectFrom('delivery')
    .select(['id', 'endpoint_id'])
    .where('state', '<', DELIVERY_STATE.delivered)
    .where('reason', 'is not', null)
    .where('state', 'in', UNENDED),
)

/** See `WriteTx.findSkipped`. */
export async function findSkipped(session: Session, endpointIds: readonly string[] | null): Promise<readonly ClaimRef[]> {
  const found = (await session.all(marked, {})).map(decodeSkipped)
  return endpointIds === null ? found : found.filter(({ endpointId }) => endpointIds.includes(endpointId))
}

export function decodeSkipped(row: { readonly id: number; readonly endpoint_id: number }): ClaimRef {
  return { deliveryId: row.id, endpointId: String(row.endpoint_id) }
}

/** Ends marked deliveries. The conditions leave out deliveries that have ended since they were found, or whose mark was removed. */
export const endSkipped = statement<{ ids: readonly number[]; nowMs: number }>()((db, p, { oneOf }) =>
  db
    .updateTable('delivery')
    .set({ state: DELIVERY_STATE.dead, settled_at_ms: p.nowMs })
    .where('id', 'in', oneOf(p.ids))
    .where('state', 'in', UNENDED)
    .where('reason', 'is not', null),
)
