import type { Settled } from '../../domain/delivery/dispatch-round.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

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
const SKIPPED = 'skipped'
/** A late result never changes a delivery that has ended. */
const UNENDED = [DELIVERY_STATE.behind, DELIVERY_STATE.due]
/** Only the newest attempts are kept, because a delivery can be retried for years. */
const ATTEMPTS_KEPT = 50
const forgetAttempts = statement<{ deliveryId: number }>()((db, p) =>
  db
    .deleteFrom('attempt')
    .where('delivery_id', '=', p.deliveryId)
    .where('id', '<=', (of) =>
      of
        .selectFrom('attempt as kept')
        .select('kept.id')
        .where('kept.delivery_id', '=', p.deliveryId)
        .orderBy('kept.id', 'desc')
        .limit(1)
        .offset(ATTEMPTS_KEPT),
    ),
)
const retry = statement<{
  id: number
  attempts: number
  spared: number
  round: number
  firstFailedAtMs: number | null
  nextAttemptAtMs: number
}>()((db, p) =>
  db
    .updateTable('delivery')
    .set({
      attempts: p.attempts,
      spared: p.spared,
      round: p.round,
      first_failed_at_ms: p.firstFailedAtMs,
      next_attempt_at_ms: p.nextAttemptAtMs,
    })
    .where('id', '=', p.id)
    .where('state', 'in', UNENDED),
)
const end = statement<{ id: number; attempts: number; state: number; reason: string | null; nowMs: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ attempts: p.attempts, state: p.state, reason: p.reason, settled_at_ms: p.nowMs })
    .where('id', '=', p.id)
    .where('state', 'in', UNENDED),
)
/** The same for one whose answer has a body, and so an attempt of its own. */
const deliverSkipped = statement<{ id: number; attempts: number; nowMs: number }>()((db, p) =>
  db
    .updateTable('delivery')
    .set({ attempts: p.attempts, state: DELIVERY_STATE.delivered, reason: null, settled_at_ms: p.nowMs })
    .where('id', '=', p.id)
    .where('state', '=', DELIVERY_STATE.dead)
    .where('reason', '=', SKIPPED),
)
/** What was skipped while its attempt was under way is delivered nevertheless. */
const accept = statement<{ id: number; attempts: number; nowMs: number; atMs: number; durationMs: number; status: number }>()((db, p) =>
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
    })
    .where('id', '=', p.id)
    .where((row) => row.or([row('state', 'in', UNENDED), row.and([row('state', '=', DELIVERY_STATE.dead), row('reason', '=', SKIPPED)])])),
)
const waiting = statement<{ id: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .innerJoin('endpoint', 'endpoint.id', 'delivery.endpoint_id')
    .select(['delivery.endpoint_id', 'delivery.parcel_id', 'delivery.attempts', 'delivery.state', 'endpoint.removed_at_ms'])
    .where('delivery.id', '=', p.id),
)

/**
 * Makes the parcel's first other waiting delivery due. Run it before the delivery ends. It reads the parcel from the row, because a join may
 * have changed it. A released delivery is due as of when it was queued, so older ones go first and neighboring rows are written together;
 * after a failure it keeps its retry time.
 */
const releaseNext = statement<{ id: number; nowMs: number }>()((db, p, { least }) =>
  db
    .updateTable('delivery')
    .set((row) => ({
      state: DELIVERY_STATE.due,
      next_attempt_at_ms: row
        .case()
        .when('attempts', '>', 0)
        .then(row.ref('next_attempt_at_ms'))
        .else(least(row.ref('next_attempt_at_ms'), row.val(p.nowMs)))
        .end(),
    }))
    .where('state', '=', DELIVERY_STATE.behind)
    .where('id', '=', (of) =>
      of
        .selectFrom('delivery as ending')
        .innerJoin('delivery as next', (join) =>
          join.onRef('next.endpoint_id', '=', 'ending.endpoint_id').onRef('next.parcel_id', '=', 'ending.parcel_id'),
        )
        .select('next.id')
        .where('ending.id', '=', p.id)
        .where('ending.state', 'in', UNENDED)
        .where('next.state', '<', DELIVERY_STATE.delivered)
        .whereRef('next.id', '!=', 'ending.id')
        .orderBy('next.sequence')
        .limit(1),
    ),
)

/** See `DeliveryTx.saveSettlements`. Held deliveries stay in state `due`: the disabled endpoint holds them. */
export function saveSettlements(session: Session, settled: readonly Settled[], nowMs: number): void {
  for (const one of settled) {
    const { deliveryId: id, attempts, result, atMs } = one
    if (hasEnded(one)) session.enqueueWrite(releaseNext, { id, nowMs })
    if (isPlainlyAccepted(one)) {
      session.enqueueWrite(accept, { id, attempts, nowMs, atMs, durationMs: Math.round(result.durationMs), status: one.result.status })
    } else saveAttempted(session, one, nowMs)
  }
}

/** Whether a delivery will not be attempted again. */
export function hasEnded({ settlement }: Settled): boolean {
  return settlement.state !== 'retrying' && settlement.state !== 'held'
}

/** Whether a delivery was accepted with an empty answer. Its attempt is then stored in the delivery's own row. */
export function isPlainlyAccepted(one: Settled): one is Settled & { readonly result: Extract<Settled['result'], { kind: 'accepted' }> } {
  return one.result.kind === 'accepted' && one.result.answerStart.byteLength === 0
}

/** Saves an attempt and the resulting state. The caller has already released the next delivery if this one ends. */
export function saveAttempted(session: Session, one: Settled, nowMs: number): void {
  const { deliveryId: id, attempts, spared, round, firstFailedAtMs, settlement } = one
  saveAttempt(session, one)
  if (settlement.state === 'retrying' || settlement.state === 'held') {
    const nextAttemptAtMs = settlement.state === 'retrying' ? settlement.nextAttemptAtMs : nowMs
    session.enqueueWrite(retry, { id, attempts, spared, round, firstFailedAtMs, nextAttemptAtMs })
    return
  }
  if (settlement.state === 'delivered') session.enqueueWrite(deliverSkipped, { id, attempts, nowMs })
  const reason = settlement.state === 'dead' ? settlement.reason : null
  session.enqueueWrite(end, { id, attempts, state: DELIVERY_STATE[settlement.state], reason, nowMs })
}

function saveAttempt(session: Session, { deliveryId, atMs, result }: Settled): void {
  session.enqueueWrite(insertAttempt, {
    deliveryId,
    atMs,
    durationMs: Math.round(result.durationMs),
    status: result.kind === 'failed' ? null : result.status,
    reason: result.kind === 'failed' ? result.reason : null,
    answer: result.answerStart.byteLength === 0 ? null : result.answerStart,
  })
  session.enqueueWrite(forgetAttempts, { deliveryId })
}

/** See `DeliveryTx.skipDelivery`. `lock`: keeps others from what waits of the parcel. */
export async function skipDelivery(
  session: Session,
  { deliveryId: id, nowMs }: { readonly deliveryId: number; readonly nowMs: number },
  lock: (endpointId: string, parcelId: number) => void = () => {},
): Promise<'done' | 'ended' | null> {
  const [found] = await session.all(waiting, { id })
  if (found === undefined) return null
  lock(String(found.endpoint_id), found.parcel_id)
  const [row = found] = await session.all(waiting, { id })
  if (row.state >= DELIVERY_STATE.delivered || row.removed_at_ms !== null) return 'ended'
  session.enqueueWrite(releaseNext, { id, nowMs })
  session.enqueueWrite(end, { id, attempts: row.attempts, state: DELIVERY_STATE.dead, reason: SKIPPED, nowMs })
  return 'done'
}
