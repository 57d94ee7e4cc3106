import { sql } from 'kysely'
import { CLOCK_SETTING, decodeClockRecord } from '../../domain/admin/clock-record.ts'
import type { DeliverySelection, ReplayCount, ReplayCursor, ReplayedBatch, ReplayRequest } from '../../domain/delivery/delivery-list.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { loadSetting } from '../settings.ts'
import { statement } from '../statement.ts'
import { findFirsts, reorderDeliveries } from './deliveries.ts'
import { survivorOf } from './feed.ts'

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

const eventsOf = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db
    .selectFrom('delivery')
    .select((row) => [survivorOf(row.ref('delivery.parcel_id'), row.ref('delivery.sequence')).as('parcel_id'), 'sequence', 'inbox_id'])
    .where('id', 'in', oneOf(p.ids))
    .orderBy('sequence'),
)
/** Uses the index by parcel alone, because a parcel has few deliveries. With sequences, it would look up every pair of parcel and sequence. */
const sameEvents = statement<{ endpointId: number; parcelIds: readonly number[]; sequences: readonly number[] }>()((db, p, dialect) =>
  db
    .selectFrom('delivery')
    .select(['id', 'parcel_id', 'sequence', 'state', 'queued_at_ms'])
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', 'in', dialect.oneOf(p.parcelIds))
    .where((row) => row(dialect.unindexed(row.ref('sequence')), 'in', dialect.oneOf(p.sequences))),
)
const insertBehind = statement<{
  endpointId: number
  parcelId: number
  sequence: number
  inboxId: number | null
  queuedAtMs: number
  nowMs: number
}>()((db, p, { integer }) =>
  db
    .insertInto('delivery')
    .values((of) => ({
      endpoint_id: p.endpointId,
      parcel_id: p.parcelId,
      sequence: p.sequence,
      previous_sequence: of.fn.coalesce(
        of
          .selectFrom('delivery as before')
          .select('before.sequence')
          .where('before.endpoint_id', '=', p.endpointId)
          .where('before.parcel_id', '=', p.parcelId)
          .where('before.sequence', '<', p.sequence)
          .orderBy('before.sequence', 'desc')
          .limit(1),
        integer(0),
      ),
      inbox_id: p.inboxId,
      state: DELIVERY_STATE.behind,
      attempts: 0,
      queued_at_ms: p.queuedAtMs,
      next_attempt_at_ms: p.nowMs,
    }))
    .onConflict((conflict) => conflict.doNothing()),
)

/** An event whose delivery is copied to another endpoint. */
interface Copy {
  readonly parcelId: number
  readonly sequence: number
  readonly inboxId: number | null
}

/**
 * Returns the events of deliveries, by sequence, with the parcels that hold them now. These may differ from the parcels in the rows, because a
 * join does not move the deliveries of removed endpoints.
 */
async function findCopies(session: Session, deliveries: readonly { readonly id: number }[]): Promise<readonly Copy[]> {
  const rows = await session.all(eventsOf, { ids: deliveries.map(({ id }) => id) })
  return rows.map((row) => ({ parcelId: row.parcel_id, sequence: row.sequence, inboxId: row.inbox_id }))
}

/**
 * Looks up the endpoint's deliveries of these events. `endedIds`: the deliveries that have ended, except those queued after `untilMs`, because
 * this replay has queued them. `missing`: the events without any delivery.
 */
async function findSame(
  session: Session,
  { endpointId, untilMs }: { readonly endpointId: number; readonly untilMs: number },
  copies: readonly Copy[],
): Promise<{ readonly endedIds: readonly number[]; readonly missing: readonly Copy[] }> {
  const rows = await session.all(sameEvents, {
    endpointId,
    parcelIds: [...new Set(copies.map(({ parcelId }) => parcelId))],
    sequences: copies.map(({ sequence }) => sequence),
  })
  const nameOf = (parcelId: number, sequence: number) => `${parcelId} ${sequence}`
  const known = new Set(rows.map((row) => nameOf(row.parcel_id, row.sequence)))
  return {
    endedIds: rows.filter((row) => row.state >= DELIVERY_STATE.delivered && row.queued_at_ms <= untilMs).map(({ id }) => id),
    missing: copies.filter(({ parcelId, sequence }) => !known.has(nameOf(parcelId, sequence))),
  }
}

/** Returns the sequences of the events of which the endpoint has a delivery in any state. */
export async function findQueued(
  session: Session,
  { endpointId, events }: { readonly endpointId: string; readonly events: readonly Pick<Copy, 'parcelId' | 'sequence'>[] },
): Promise<ReadonlySet<number>> {
  if (events.length === 0) return new Set()
  const parcelIds = [...new Set(events.map(({ parcelId }) => parcelId))]
  const sequences = events.map(({ sequence }) => sequence)
  const rows = await session.all(sameEvents, { endpointId: Number(endpointId), parcelIds, sequences })
  return new Set(rows.map(({ sequence }) => sequence))
}

/** Inserts a delivery in the state `behind` for each event that has no delivery. Returns the number of inserted rows. */
async function insertCopies(
  session: Session,
  copies: readonly Copy[],
  queued: { readonly endpointId: number; readonly queuedAtMs: number; readonly nowMs: number },
): Promise<number> {
  const inserted = await Promise.all(copies.map((copy) => session.run(insertBehind, { ...copy, ...queued })))
  return inserted.reduce((sum, { rows }) => sum + rows, 0)
}

type Range = { endpointId: number; state: number; from: number; to: number; afterId: number; limit: number }

/** The second condition on the state looks superfluous, but is the condition of the partial index. Without it the index would not be used. */
const inOrderOf = (column: 'sequence' | 'queued_at_ms') =>
  statement<Range>()((db, p) =>
    db
      .selectFrom('delivery')
      .select(['id', 'parcel_id', 'queued_at_ms', (row) => row.ref(column).as('at')])
      .where('endpoint_id', '=', p.endpointId)
      .where('state', '=', p.state)
      .where('state', '>=', DELIVERY_STATE.delivered)
      .where(column, '>=', p.from)
      .where(column, '<=', p.to)
      .where((row) => row.or([row(column, '>', p.from), row('id', '>', p.afterId)]))
      .orderBy(column)
      .orderBy('id')
      .limit(p.limit),
  )
const bySequence = inOrderOf('sequence')
const byTime = inOrderOf('queued_at_ms')
const ofParcel = statement<Omit<Range, 'state'> & { parcelId: number; a: number; b: number; c: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'parcel_id', 'sequence as at', 'queued_at_ms'])
    .where('endpoint_id', '=', p.endpointId)
    .where('parcel_id', '=', p.parcelId)
    .where('state', 'in', [p.a, p.b, p.c])
    .where('sequence', '>=', p.from)
    .where('sequence', '<=', p.to)
    .where((row) => row.or([row('sequence', '>', p.from), row('id', '>', p.afterId)]))
    .orderBy('sequence')
    .limit(p.limit),
)
/** Waiting deliveries of a removed endpoint count as ended, even before their rows are updated. */
const one = statement<{ id: number; endpointId: number; a: number; b: number; c: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .innerJoin('endpoint', 'endpoint.id', 'delivery.endpoint_id')
    .select(['delivery.id', 'delivery.parcel_id', 'delivery.sequence as at', 'delivery.queued_at_ms'])
    .where('delivery.id', '=', p.id)
    .where('delivery.endpoint_id', '=', p.endpointId)
    .where((row) => row.or([row('delivery.state', 'in', [p.a, p.b, p.c]), row('endpoint.removed_at_ms', 'is not', null)])),
)
const waitingOfRemoved = statement<{ endpointId: number; limit: number }>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['parcel_id', 'sequence', 'queued_at_ms'])
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '<', DELIVERY_STATE.delivered)
    .where(sql<boolean>`exists (select 1 from endpoint where endpoint.id = delivery.endpoint_id and endpoint.removed_at_ms is not null)`)
    .limit(p.limit),
)

interface EndedDelivery {
  readonly id: number
  readonly parcelId: number
}

interface EndedQuery {
  readonly selection: DeliverySelection
  readonly after: ReplayCursor | null
  readonly limit: number
  /** When the replay was requested. If the query selects by time, deliveries that were queued later are left out. */
  readonly untilMs: number
}

interface Row {
  readonly id: number
  readonly parcel_id: number
  readonly at: number
  readonly queued_at_ms: number
}

/**
 * Finds the selected ended deliveries, sorted by sequence or, if the query selects by time, by the time of queuing. Reads only rows in the
 * selected range, even in a large table.
 */
async function findEnded(
  session: Session,
  query: EndedQuery,
): Promise<{ readonly ended: readonly EndedDelivery[]; readonly next: ReplayCursor | null }> {
  const rows = await findRows(session, query)
  const last = rows.length < query.limit ? undefined : rows.at(-1)
  const ended = rows
    .filter(({ queued_at_ms: atMs }) => atMs >= query.selection.fromMs)
    .map((row) => ({ id: row.id, parcelId: row.parcel_id }))
  return { ended, next: last === undefined ? null : { at: last.at, id: last.id } }
}

/** Counts the deliveries that a replay would queue, up to `limit`. Waiting deliveries of a removed endpoint count as ended. */
export async function countReplayable(
  session: Session,
  { selection, limit, untilMs }: { readonly selection: DeliverySelection; readonly limit: number; readonly untilMs: number },
): Promise<ReplayCount> {
  const waiting = selection.states.includes('cancelled') ? await waitingOf(session, selection, limit) : []
  const ended = waiting.length < limit ? await findRows(session, { selection, after: null, limit: limit - waiting.length, untilMs }) : []
  const rows = [...waiting, ...ended.filter(({ queued_at_ms: atMs }) => atMs >= selection.fromMs)]
  const oldestAtMs = rows.reduce<number | null>((oldest, { queued_at_ms: atMs }) => Math.min(oldest ?? atMs, atMs), null)
  return { count: rows.length, parcels: new Set(rows.map((row) => row.parcel_id)).size, oldestAtMs }
}

/** Returns the selected waiting deliveries of a removed endpoint. If `limit` or more wait, returns any `limit` of them, even unselected ones. */
async function waitingOf(session: Session, selection: DeliverySelection, limit: number) {
  const rows = await session.all(waitingOfRemoved, { endpointId: Number(selection.endpointId), limit })
  if (rows.length === limit) return rows
  const { parcelId, sequence, fromSequence, fromMs, deliveryId } = selection
  if (deliveryId !== null) return []
  return rows.filter(
    (row) =>
      (parcelId === null || row.parcel_id === parcelId) &&
      (sequence === null || row.sequence === sequence) &&
      row.sequence >= fromSequence &&
      row.queued_at_ms >= fromMs,
  )
}

function isByTime({ fromMs, sequence, parcelId, deliveryId }: DeliverySelection): boolean {
  return fromMs > 0 && sequence === null && parcelId === null && deliveryId === null
}

function rangeOf({ selection, after, limit, untilMs }: EndedQuery): Omit<Range, 'state'> {
  const { endpointId, fromSequence, fromMs, sequence } = selection
  const timed = isByTime(selection)
  const from = timed ? fromMs : Math.max(sequence ?? 0, fromSequence)
  const to = timed ? untilMs : (sequence ?? Number.MAX_SAFE_INTEGER)
  return { endpointId: Number(endpointId), from: after?.at ?? from, to, afterId: after?.id ?? 0, limit }
}

async function findRows(session: Session, query: EndedQuery): Promise<readonly Row[]> {
  const { selection, limit } = query
  const { deliveryId, parcelId, sequence, fromMs } = selection
  const [a = -1, b = a, c = a] = selection.states.map((state) => DELIVERY_STATE[state])
  const range = rangeOf(query)
  if (deliveryId !== null) {
    return query.after === null ? await session.all(one, { id: deliveryId, endpointId: range.endpointId, a, b, c }) : []
  }
  if (parcelId !== null) return await session.all(ofParcel, { ...range, parcelId, a, b, c })
  const inOrder = fromMs > 0 && sequence === null ? byTime : bySequence
  const found = await Promise.all(selection.states.map((state) => session.all(inOrder, { ...range, state: DELIVERY_STATE[state] })))
  return found
    .flat()
    .toSorted((x, y) => x.at - y.at || x.id - y.id)
    .slice(0, limit)
}
