import { sql } from 'kysely'
import type { ClaimRef, QueuedDelivery, Settled } from '../../../core/domain/delivery/dispatch-round.ts'
import { cancelWaiting, endSkipped, hasEnded, isPlainlyAccepted, saveAttempted } from '../../../core/store/delivery/settlements.ts'
import type { Session } from '../../../core/store/engine.ts'
import { real } from '../history/provisional.ts'
import { type Columns, enqueueRows, rawStatement } from '../postgres-dialect.ts'

function queuedRow({ endpointId, parcelId, sequence, inboxId, toldIn, nowMs }: QueuedDelivery) {
  return { endpointId: Number(endpointId), parcelId, sequence, inboxId, toldIn, nowMs }
}

const insertAll = rawStatement<Columns<ReturnType<typeof queuedRow>>>()(
  (p) => sql`
    insert into delivery (endpoint_id, parcel_id, sequence, previous_sequence, inbox_id, state, attempts, queued_at_ms, next_attempt_at_ms)
    select endpoint_id, parcel_id, sequence,
      coalesce(lag(sequence) over in_order, (select max(before.sequence) from delivery as before where before.endpoint_id = queued.endpoint_id and before.parcel_id = queued.parcel_id), 0),
      inbox_id,
      case when row_number() over in_order > 1 then 0 else coalesce((
        select 0 from delivery as waiting where waiting.endpoint_id = queued.endpoint_id and waiting.parcel_id = queued.parcel_id and waiting.state < 2 limit 1
      ), 1) end,
      0, now_ms, now_ms
    from (
      select u.endpoint_id, u.parcel_id, ${real(sql.ref('u.sequence'))} as sequence, u.inbox_id, u.now_ms
      from unnest(${p.endpointId}::bigint[], ${p.parcelId}::bigint[], ${p.sequence}::bigint[], ${p.inboxId}::bigint[], ${p.toldIn}::bigint[],
        ${p.nowMs}::bigint[]) as u (endpoint_id, parcel_id, sequence, inbox_id, told_in, now_ms)
      where u.told_in is null or (
        select told.id from delivery as told
        where told.endpoint_id = u.endpoint_id and told.parcel_id = u.parcel_id and told.sequence = ${real(sql.ref('u.told_in'))} limit 1
      ) is null
    ) as queued
    window in_order as (partition by endpoint_id, parcel_id order by sequence)`,
)

/**
 * Queues deliveries of new events, after all earlier events of their parcels. A delivery is due at once, or waits behind an earlier one of
 * its parcel (DOMAIN 7.3). The caller must have locked the parcels. The SQL uses subqueries with `limit 1`, because for an `exists` the
 * planner may read all waiting deliveries.
 */
export function enqueueDeliveries(session: Session, deliveries: readonly QueuedDelivery[]): void {
  enqueueRows(session, insertAll, deliveries.map(queuedRow))
}

const insertComposed = rawStatement<Columns<{ sequence: number; body: Uint8Array }>>()(
  (p) => sql`
    insert into composed_event (sequence, body)
    select ${real(sql.ref('u.sequence'))}, u.body from unnest(${p.sequence}::bigint[], ${p.body}::bytea[]) as u (sequence, body)
    on conflict (sequence) do nothing`,
)

/** Saves the bytes of events that the relay composed, because no push brought them. */
export function enqueueComposed(session: Session, composed: readonly { readonly sequence: number; readonly body: Uint8Array }[]): void {
  enqueueRows(session, insertComposed, composed)
}

const lockParcelsOf = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql`
    select id from parcel where id in (select parcel_id from delivery where id = any(${p.ids}::bigint[])) order by id for no key update`,
)
/**
 * Looks up the parcels of the deliveries again and locks them, because a join may have moved a delivery to another parcel. If a parcel is
 * joined even while this statement waits for its lock, the transaction fails (by a division by zero) and begins again.
 */
const lockStanding = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql`
    with standing as materialized (
      select id from parcel where id in (select parcel_id from delivery where id = any(${p.ids}::bigint[]))
    ), locked as materialized (
      select id from parcel where id in (select id from standing) order by id for no key update
    ) select 1 / (case when (select count(*) from standing) = (select count(*) from locked) then 1 else 0 end)`,
)
const lockEndpointsOf = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql`
    select id from endpoint where id in (select endpoint_id from delivery where id = any(${p.ids}::bigint[]) and parcel_id + 0 = 0) order by id for no key update`,
)
const lockAll = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql`select id from parcel where id = any(${p.ids}::bigint[]) order by id for no key update`,
)
const lockEndpoint = rawStatement<{ id: number }>()((p) => sql`select id from endpoint where id = ${p.id} for no key update`)

/** If a parcel was joined to another during the wait for its lock, fails (by a division by zero), so that the transaction begins again. */
const refuseJoined = rawStatement<{ ids: readonly number[] }>()(
  (p) => sql`select 1 / (case when exists (select 1 from feed where kind = 4 and entry = any(${p.ids}::bigint[])) then 0 else 1 end)`,
)

function lockParcels(session: Session, parcelIds: readonly number[]): void {
  session.enqueueWrite(lockAll, { ids: parcelIds })
  session.enqueueWrite(refuseJoined, { ids: parcelIds })
}

/**
 * Locks the parcels until the transaction ends, so that only one transaction at a time queues, settles or replays deliveries of a parcel.
 * Operator events have no parcel (id 0), so for them it locks the endpoint.
 */
export function lockQueues(session: Session, endpointId: string, parcelIds: readonly number[]): void {
  lockParcels(session, parcelIds)
  if (parcelIds.includes(0)) session.enqueueWrite(lockEndpoint, { id: Number(endpointId) })
}

/**
 * After these deliveries have ended, makes the first waiting delivery of each of their parcels due. If that delivery has failed before, it
 * keeps its retry time.
 */
const releaseFirsts = rawStatement<{ ids: readonly number[]; nowMs: number }>()(
  (p) => sql`
    update delivery set state = 1, next_attempt_at_ms = case when attempts > 0 then next_attempt_at_ms else least(next_attempt_at_ms, ${p.nowMs}) end
    where state + 0 = 0 and id in (
      select first.id from (
        select distinct endpoint_id, parcel_id from delivery where id = any(${p.ids}::bigint[])
      ) as ended cross join lateral (
        select id from delivery where endpoint_id = ended.endpoint_id and parcel_id = ended.parcel_id and state < 2 order by sequence limit 1
      ) as first
    )`,
)
const acceptAll = rawStatement<{
  ids: readonly number[]
  attempts: readonly number[]
  atMs: readonly number[]
  durationMs: readonly number[]
  statuses: readonly number[]
  addresses: readonly (string | null)[]
  nowMs: number
}>()(
  (p) => sql`
    update delivery set attempts = u.attempts, state = 2, reason = null, settled_at_ms = ${p.nowMs}, accepted_at_ms = u.at_ms, accepted_duration_ms = u.duration_ms,
      accepted_status = u.status, accepted_address = u.address
    from unnest(${p.ids}::bigint[], ${p.attempts}::integer[], ${p.atMs}::bigint[], ${p.durationMs}::bigint[], ${p.statuses}::integer[],
      ${p.addresses}::text[]) as u (id, attempts, at_ms, duration_ms, status, address)
    where delivery.id = u.id and delivery.state + 0 < 2`,
)

/** Cancels deliveries that have waited for longer than `retention.held`, and makes the next deliveries of their parcels due. */
export function cancelInSets(session: Session, ids: readonly number[], nowMs: number): void {
  lockQueuesOf(session, ids)
  cancelWaiting(session, ids, nowMs)
  session.enqueueWrite(releaseFirsts, { ids, nowMs })
}

/** Locks the parcels of these deliveries, and the endpoints of operator events. */
function lockQueuesOf(session: Session, ids: readonly number[]): void {
  session.enqueueWrite(lockParcelsOf, { ids })
  session.enqueueWrite(lockStanding, { ids })
  session.enqueueWrite(lockEndpointsOf, { ids })
}

/** See `WriteTx.saveSettlements`. */
export function saveSettlementsInSets(session: Session, settled: readonly Settled[], skipped: readonly ClaimRef[], nowMs: number): void {
  if (settled.length + skipped.length === 0) return
  const ids = [...settled, ...skipped].map(({ deliveryId }) => deliveryId)
  lockQueuesOf(session, ids)
  const accepted = settled.filter(isPlainlyAccepted)
  if (accepted.length > 0) {
    session.enqueueWrite(acceptAll, {
      ids: accepted.map(({ deliveryId }) => deliveryId),
      attempts: accepted.map(({ attempts }) => attempts),
      atMs: accepted.map(({ atMs }) => atMs),
      durationMs: accepted.map(({ result }) => Math.round(result.durationMs)),
      statuses: accepted.map(({ result }) => result.status),
      addresses: accepted.map(({ result }) => result.address ?? null),
      nowMs,
    })
  }
  for (const one of settled) if (!isPlainlyAccepted(one)) saveAttempted(session, one, nowMs)
  if (skipped.length > 0) session.enqueueWrite(endSkipped, { ids: skipped.map(({ deliveryId }) => deliveryId), nowMs })
  const ended = [...settled.filter(hasEnded), ...skipped]
  if (ended.length > 0) session.enqueueWrite(releaseFirsts, { ids: ended.map(({ deliveryId }) => deliveryId), nowMs })
}
