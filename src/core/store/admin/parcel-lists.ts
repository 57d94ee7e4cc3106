import type { Kysely } from 'kysely'
import type {
  FilteredCount,
  InspectedParcel,
  ListedParcel,
  ParcelCursor,
  ParcelFilter,
  ParcelPage,
  ParcelQuery,
  StoreCounts,
} from '../../domain/admin/parcel-list.ts'
import { NO_CONTEXT } from '../../domain/history/order-context.ts'
import { isUnheardOf, newParcel, type ParcelState } from '../../domain/history/parcel-state.ts'
import { decodeParcel } from '../codec.ts'
import type { Session } from '../engine.ts'
import type { Contents } from '../history/contents.ts'
import { findByReference, loadContexts } from '../history/order-contexts.ts'
import { viewParcel } from '../history/parcel-view.ts'
import { findIdentifier, findParcels, loadIdentifiersOf, loadParcel } from '../history/parcels.ts'
import { countQuarantined } from '../ingest/inbox-rows.ts'
import { statement } from '../statement.ts'
import type { Tables } from '../tables.ts'

/** A page scans at most this many rows. Without the limit, a filter that matches few parcels would delay other reads. */
const LOOKED_AT_MAX = 2000
/** Stopped parcels are listed in this order of their reasons. */
const REASONS: readonly NonNullable<ParcelState['stopped']>[] = ['delivered', 'stale', 'unknown', 'unwatched']
/** A character that sorts after every character of an identifier. */
const AFTER_ALL = '~'

const byNext = statement<{ atMs: number; parcelId: number; limit: number }>()((db, p) =>
  db
    .selectFrom('parcel')
    .selectAll()
    .where('next_poll_at_ms', '>=', p.atMs)
    .where((row) => row.or([row('next_poll_at_ms', '>', p.atMs), row('id', '>', p.parcelId)]))
    .orderBy('next_poll_at_ms')
    .orderBy('id')
    .limit(p.limit),
)
const byStopped = statement<{ reason: string; parcelId: number; limit: number }>()((db, p) =>
  db
    .selectFrom('parcel')
    .selectAll()
    .where('next_poll_at_ms', 'is', null)
    .where('stopped', '=', p.reason)
    .where('id', '>', p.parcelId)
    .orderBy('id')
    .limit(p.limit),
)
const byIdentifier = statement<{ from: string; after: string; to: string; limit: number }>()((db, p) =>
  db
    .selectFrom('identifier')
    .select(['value', 'parcel_id'])
    .where('value', '>=', p.from)
    .where('value', '>', p.after)
    .where('value', '<', p.to)
    .orderBy('value')
    .limit(p.limit),
)

/** A scanned row, and the cursor with which a page continues after it. */
interface Looked {
  readonly state: ParcelState
  readonly cursor: ParcelCursor
}

/** Lists a page of parcels: by identifier if `prefix` is given, by id if `stopped` is given, otherwise by their next check. */
export async function listParcels(session: Session, query: ParcelQuery): Promise<ParcelPage> {
  const parcels: ListedParcel[] = []
  let next = query.after
  for (let left = LOOKED_AT_MAX; left > 0; ) {
    const looked = await lookOn(session, query, next, Math.min(left, query.limit))
    if (looked === null) return { parcels, next: null }
    left -= Math.max(1, looked.length)
    const found = looked.filter(({ state }) => matches(state, query)).slice(0, query.limit - parcels.length)
    parcels.push(...(await withRest(session, found)))
    if (parcels.length === query.limit) return { parcels, next: found.at(-1)?.cursor ?? next }
    next = looked.at(-1)?.cursor ?? nextReason(next)
  }
  return { parcels, next }
}

/** Scans the rows after a cursor. An empty list: continue with the next reason in `REASONS`. Null: the list has ended. */
async function lookOn(session: Session, query: ParcelQuery, after: ParcelCursor | null, limit: number): Promise<readonly Looked[] | null> {
  if (query.prefix !== null) return await lookByIdentifier(session, query.prefix, after?.by === 'identifier' ? after.value : '', limit)
  if (query.reference !== null && query.reference !== undefined)
    return await lookByReference(session, query.reference, after?.by === 'reference' ? after.parcelId : 0, limit)
  if (query.stopped !== null) {
    const parcelId = after?.by === 'stopped' ? after.parcelId : 0
    return nullIfNone(await lookByStopped(session, query.stopped, parcelId, limit))
  }
  if (after?.by === 'stopped') {
    const looked = await lookByStopped(session, after.reason, after.parcelId, limit)
    return looked.length === 0 && after.reason === REASONS.at(-1) ? null : looked
  }
  const { atMs, parcelId } = after?.by === 'next' ? after : { atMs: 0, parcelId: 0 }
  const rows = await session.all(byNext, { atMs, parcelId, limit })
  return rows.map((row) => {
    const state = decodeParcel(row)
    return { state, cursor: { by: 'next', atMs: state.nextPollAtMs ?? 0, parcelId: state.parcelId } }
  })
}

async function lookByStopped(session: Session, reason: NonNullable<ParcelState['stopped']>, parcelId: number, limit: number) {
  const rows = await session.all(byStopped, { reason, parcelId, limit })
  return rows.map((row): Looked => ({ state: decodeParcel(row), cursor: { by: 'stopped', reason, parcelId: row.id } }))
}

async function lookByIdentifier(session: Session, prefix: string, after: string, limit: number): Promise<readonly Looked[] | null> {
  const rows = await session.all(byIdentifier, { from: prefix, after, to: prefix + AFTER_ALL, limit })
  const ids = [...new Set(rows.map((row) => row.parcel_id))]
  const [states, identifiers] = await Promise.all([findParcels(session, ids), loadIdentifiersOf(session, ids)])
  const stateOf = new Map(states.map((state) => [state.parcelId, state]))
  const firstOf = new Map<number, string>()
  for (const { parcel_id: parcelId, value } of identifiers) {
    const first = firstOf.get(parcelId)
    if (value.startsWith(prefix) && (first === undefined || value < first)) firstOf.set(parcelId, value)
  }
  return nullIfNone(
    rows.map(({ value, parcel_id: parcelId }) => {
      // A parcel with several matching identifiers is listed only once, at the first of them.
      const state = firstOf.get(parcelId) === value ? stateOf.get(parcelId) : undefined
      return { state: state ?? NOBODY, cursor: { by: 'identifier', value } }
    }),
  )
}

async function lookByReference(session: Session, reference: string, after: number, limit: number): Promise<readonly Looked[] | null> {
  const ids = await findByReference(session, { reference, after, limit })
  const states = new Map((ids.length === 0 ? [] : await findParcels(session, ids)).map((state) => [state.parcelId, state]))
  return nullIfNone(ids.map((parcelId) => ({ state: states.get(parcelId) ?? NOBODY, cursor: { by: 'reference', parcelId } })))
}

function nullIfNone(looked: readonly Looked[]): readonly Looked[] | null {
  return looked.length === 0 ? null : looked
}

function nextReason(after: ParcelCursor | null): ParcelCursor {
  const at = after?.by === 'stopped' ? REASONS.indexOf(after.reason) + 1 : 0
  return { by: 'stopped', reason: REASONS[at] ?? 'unwatched', parcelId: 0 }
}

function matches(state: ParcelState, { status, stopped, prefix, reference = null, isUnknown = false }: ParcelQuery): boolean {
  if (state === NOBODY) return false
  if (isUnknown && state.stopped !== 'unknown' && !isUnheardOf(state)) return false
  if (status !== null && state.latest?.status !== status) return false
  return (prefix === null && reference === null) || stopped === null || (state.stopped === stopped && state.nextPollAtMs === null)
}

/** The state of a row that is left out: its parcel is listed in the row of another identifier, or is gone. */
const NOBODY = newParcel(0, 0)

/** Null: no parcel has this identifier. */
export async function inspectParcel(session: Session, contents: Contents, identifier: string): Promise<InspectedParcel | null> {
  const found = await findIdentifier(session, identifier)
  if (found === null) return null
  const { parcelId } = found
  const state = await loadParcel(session, parcelId)
  const { entries, distributionType } = await viewParcel(session, contents, parcelId)
  const [listed] = await withRest(session, [{ state }])
  return listed === undefined ? null : { ...listed, entries, distributionType }
}

/** Adds what a list shows of a parcel besides its state. */
async function withRest(session: Session, parcels: readonly { readonly state: ParcelState }[]): Promise<readonly ListedParcel[]> {
  const ids = parcels.map(({ state }) => state.parcelId)
  if (ids.length === 0) return []
  const [rows, orders] = await Promise.all([loadIdentifiersOf(session, ids), loadContexts(session, ids)])
  const byParcel = Map.groupBy(rows, (row) => row.parcel_id)
  return parcels.map(({ state }) => ({
    state,
    identifiers: (byParcel.get(state.parcelId) ?? []).map((row) => ({
      value: row.value,
      isTrackingId: row.is_tracking_id === 1,
      refusedAtMs: row.refused_at_ms,
    })),
    order: orders.get(state.parcelId) ?? NO_CONTEXT,
  }))
}

/** Each reads at most `limit` rows of an index or of the table, and groups what it read by what filters compare. */
const amongAll = statement<{ limit: number }>()((db, p) => grouped(db, seenIn(db).where('id', '>', 0).limit(p.limit)))
const amongStopped = statement<{ reason: string; limit: number }>()((db, p) =>
  grouped(db, seenIn(db).where('next_poll_at_ms', 'is', null).where('stopped', '=', p.reason).limit(p.limit)),
)
const amongNamed = statement<{ from: string; to: string; limit: number }>()((db, p) =>
  db
    .selectFrom(
      db
        .selectFrom(
          db
            .selectFrom('identifier')
            .select(['value', 'parcel_id'])
            .where('value', '>=', p.from)
            .where('value', '<', p.to)
            .orderBy('value')
            .limit(p.limit)
            .as('named'),
        )
        .select((row) => ['parcel_id', row.fn.countAll<number>().as('looked')])
        .groupBy('parcel_id')
        .as('seen'),
    )
    .innerJoin('parcel', 'parcel.id', 'seen.parcel_id')
    .select((row) => [
      'parcel.latest_status',
      'parcel.stopped',
      row.fn.countAll<number>().as('parcels'),
      row.fn.count<number>('parcel.next_poll_at_ms').as('polled'),
      row.fn.sum<number>('seen.looked').as('looked'),
    ])
    .groupBy(['parcel.latest_status', 'parcel.stopped']),
)

const amongOrder = statement<{ reference: string; limit: number }>()((db, p) =>
  db
    .selectFrom(
      db
        .selectFrom('order_context')
        .select('parcel_id')
        .where('reference', '=', p.reference)
        .orderBy('parcel_id')
        .limit(p.limit)
        .as('named'),
    )
    .innerJoin('parcel', 'parcel.id', 'named.parcel_id')
    .select((row) => [
      'parcel.latest_status',
      'parcel.stopped',
      row.fn.countAll<number>().as('parcels'),
      row.fn.count<number>('parcel.next_poll_at_ms').as('polled'),
      row.fn.countAll<number>().as('looked'),
    ])
    .groupBy(['parcel.latest_status', 'parcel.stopped']),
)

function seenIn(db: Kysely<Tables>) {
  return db.selectFrom('parcel').select(['latest_status', 'stopped', 'next_poll_at_ms']).orderBy('id', 'desc')
}

function grouped(db: Kysely<Tables>, seen: ReturnType<typeof seenIn>) {
  return db
    .selectFrom(seen.as('seen'))
    .select((row) => [
      'latest_status',
      'stopped',
      row.fn.countAll<number>().as('parcels'),
      row.fn.count<number>('next_poll_at_ms').as('polled'),
      row.fn.countAll<number>().as('looked'),
    ])
    .groupBy(['latest_status', 'stopped'])
}

/** Counts the parcels of a list. Reads at most `max` rows and one, whatever the filters match. */
export async function countParcels(
  session: Session,
  { prefix, reference = null, status, stopped }: ParcelFilter,
  max: number,
): Promise<FilteredCount> {
  const limit = max + 1
  const groups = await (prefix !== null
    ? session.all(amongNamed, { from: prefix, to: prefix + AFTER_ALL, limit })
    : reference !== null
      ? session.all(amongOrder, { reference, limit })
      : stopped !== null
        ? session.all(amongStopped, { reason: stopped, limit })
        : session.all(amongAll, { limit }))
  const listed = groups.map((group) => {
    if (status !== null && group.latest_status !== status) return 0
    if (stopped !== null) return group.stopped === stopped ? group.parcels - group.polled : 0
    // Of all parcels, a list holds none that was never watched.
    return prefix === null && reference === null && group.stopped === null ? group.polled : group.parcels
  })
  const looked = groups.reduce((sum, group) => sum + Number(group.looked), 0)
  const count = listed.reduce((sum, parcels) => sum + parcels, 0)
  return { count: Math.min(count, max), more: looked > max }
}

const allParcels = statement()((db) => db.selectFrom('parcel').select((row) => row.fn.countAll<number>().as('count')))
const watched = statement()((db) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', 'is not', null),
)
const overdue = statement<{ nowMs: number }>()((db, p) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', '<=', p.nowMs),
)

const unknown = statement<{ reason: string }>()((db, p) =>
  db
    .selectFrom('parcel')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('next_poll_at_ms', 'is', null)
    .where('stopped', '=', p.reason),
)

export async function countStore(session: Session, nowMs: number): Promise<StoreCounts> {
  const [all] = await session.all(allParcels, {})
  const [polled] = await session.all(watched, {})
  const [late] = await session.all(overdue, { nowMs })
  const [stopped] = await session.all(unknown, { reason: 'unknown' })
  return {
    parcels: all?.count ?? 0,
    watched: polled?.count ?? 0,
    overdue: late?.count ?? 0,
    unknown: stopped?.count ?? 0,
    quarantined: await countQuarantined(session),
  }
}
