import { sql } from 'kysely'
import type { DeliverySelection, ReplayCount, ReplayCursor } from '../../domain/delivery/delivery-list.ts'
import { DELIVERY_STATE } from '../codec.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

type Range = { endpointId: number; state: number; from: number; to: number; afterId: number; limit: number }

/** The second condition on the state looks superfluous, but is the condition of the partial index. Without it the index would not be used. */
const bySequence = statement<Range>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'parcel_id', 'sequence as at', 'queued_at_ms'])
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', p.state)
    .where('state', '>=', DELIVERY_STATE.delivered)
    .where('sequence', '>=', p.from)
    .where('sequence', '<=', p.to)
    .where((row) => row.or([row('sequence', '>', p.from), row('id', '>', p.afterId)]))
    .orderBy('sequence')
    .orderBy('id')
    .limit(p.limit),
)
const byTime = statement<Range>()((db, p) =>
  db
    .selectFrom('delivery')
    .select(['id', 'parcel_id', 'queued_at_ms as at', 'queued_at_ms'])
    .where('endpoint_id', '=', p.endpointId)
    .where('state', '=', p.state)
    .where('state', '>=', DELIVERY_STATE.delivered)
    .where('queued_at_ms', '>=', p.from)
    .where('queued_at_ms', '<=', p.to)
    .where((row) => row.or([row('queued_at_ms', '>', p.from), row('id', '>', p.afterId)]))
    .orderBy('queued_at_ms')
    .orderBy('id')
    .limit(p.limit),
)
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

export interface EndedDelivery {
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
export async function findEnded(
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

export function isByTime({ fromMs, sequence, parcelId, deliveryId }: DeliverySelection): boolean {
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
