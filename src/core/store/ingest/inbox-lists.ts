import { type Kysely, sql } from 'kysely'
import { findFault, GLIMPSED_NOTHING, glimpseBody } from '../../domain/ingest/fault-in-body.ts'
import type { HeldPage, HeldPush, InboxPage, InboxPush, InboxQuery, InboxState, InspectedPush } from '../../domain/ingest/inbox.ts'
import type { Session } from '../engine.ts'
import { loadNames } from '../history/parcels.ts'
import { statement } from '../statement.ts'
import type { Tables } from '../tables.ts'
import { INBOX_STATES } from './inbox-rows.ts'

/** The most pushes that a page scans. A condition that has no index would otherwise scan the whole inbox. */
const LOOKED_AT_MAX = 10_000
/** A push may have been received up to this many milliseconds before a push with a lower id, because replicas work at the same time. */
const DISORDER_MS = 60_000
/** The largest body that a list reads, in bytes. Reading a hundred such bodies takes milliseconds. */
const READ_BYTES_MAX = 16 * 1024

const COLUMNS = ['id', 'state', 'reason', 'received_at_ms', 'key_index', 'content_encoding', 'duplicates', 'parcel_id'] as const
const bodyBytes = sql<number | null>`length(body)`.as('body_bytes')
const shortBody = sql<Uint8Array | null>`(case when length(body) <= ${sql.lit(READ_BYTES_MAX)} then body end)`.as('short_body')

const listed = (db: Kysely<Tables>) => db.selectFrom('inbox').select(COLUMNS).select([bodyBytes, shortBody])

/** Limits a list to pushes that were received in a span. The caller adds a condition that can use an index. */
const receivedIn = (db: Kysely<Tables>, span: Span) =>
  listed(db).where('received_at_ms', '>=', span.fromMs).where('received_at_ms', '<', span.toMs)

const newest = statement<{ limit: number }>()((db, p) =>
  db.selectFrom('inbox').select(['state', 'reason', 'received_at_ms']).where('id', '>', 0).orderBy('id', 'desc').limit(p.limit),
)
const newestBefore = statement<{ before: number }>()((db, p) =>
  db.selectFrom('inbox').select('id').where('id', '>', 0).where('id', '<', p.before).orderBy('id', 'desc').limit(1),
)

/**
 * Finds the lowest id of a push that came at a time or later. Ids rise (nearly) in the order of arrival, so a binary search finds it. An
 * index of times would have to be updated at every push.
 */
const firstFrom = statement<{ atMs: number }>()((db, p, { integer }) => {
  const middle = sql`(low + high) / 2`
  const isBefore = sql`(select received_at_ms from inbox where id >= ${middle} order by id limit 1) < ${integer(p.atMs)}`
  const halving = sql<{ id: number }>`(
    with recursive halving (low, high) as (
      select cast(1 as bigint), cast(coalesce((select max(id) from inbox where id > 0), 0) + 1 as bigint)
      union all
      select case when ${isBefore} then ${middle} + 1 else low end, case when ${isBefore} then high else ${middle} end
      from halving where low < high
    ) select low as id from halving where low >= high)`
  return db.selectFrom(halving.as('first')).select('first.id')
})

type Span = { readonly fromMs: number; readonly toMs: number }

const stretch = statement<Span & { from: number; before: number; limit: number; most: number }>()((db, p, { unindexed }) =>
  receivedIn(db, p)
    .where('id', '>=', p.from)
    .where('id', '<', p.before)
    .where((row) => unindexed(row.ref('state')), '<=', p.most)
    .orderBy('id', 'desc')
    .limit(p.limit),
)

// Reads all ids by the index of parcels and digests. A parcel has few pushes.
const idsOfParcel = statement<{ parcelId: number }>()((db, p, { unindexed }) =>
  db
    .selectFrom('inbox')
    .select('id')
    .where('parcel_id', '=', p.parcelId)
    .where((row) => unindexed(row.ref('state')), '=', sql.lit(INBOX_STATES.recorded)),
)
// Selects by ids alone. If times were a condition too, PostgreSQL might keep a plan that reads the whole inbox.
const byIds = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) => listed(db).where('id', 'in', oneOf(p.ids)))
const namesOf = statement<{ identifier: string }>()((db, p) =>
  db
    .selectFrom('identifier')
    .select(['parcel_id', 'value'])
    .where('parcel_id', '=', (of) =>
      of.selectFrom('identifier as named').select('named.parcel_id').where('named.value', '=', p.identifier),
    ),
)

type Page = Span & { readonly before: number; readonly limit: number }

/** Makes the statements for the pushes in one state. Each state that is listed in this way is rare and has a partial index. */
const heldIn = (state: number) => ({
  page: statement<Page>()((db, p) =>
    receivedIn(db, p).where('state', '=', state).where('id', '<', p.before).orderBy('id', 'desc').limit(p.limit),
  ),
  ofReason: statement<Page & { readonly reason: string }>()((db, p) =>
    receivedIn(db, p)
      .where('state', '=', state)
      .where('reason', '=', p.reason)
      .where('id', '<', p.before)
      .orderBy('id', 'desc')
      .limit(p.limit),
  ),
  naming: statement<Page & { readonly from: number; readonly reason: string | null; readonly names: readonly string[] }>()(
    (db, p, { containsAny }) =>
      receivedIn(db, p)
        .where('state', '=', state)
        .where('id', '>=', p.from)
        .where('id', '<', p.before)
        .where((row) => row.or([sql<boolean>`cast(${p.reason} as text) is null`, row('reason', '=', p.reason)]))
        .where((row) => containsAny(row.ref('body'), p.names))
        .orderBy('id', 'desc')
        .limit(p.limit),
  ),
  end: statement<{ readonly before: number }>()((db, p) =>
    db
      .selectFrom('inbox')
      .select('id')
      .where('state', '=', state)
      .where('id', '<', p.before)
      .orderBy('id', 'desc')
      .limit(sql.lit(1))
      .offset(sql.lit(LOOKED_AT_MAX - 1)),
  ),
})
const HELD = ['quarantined', 'expired', 'dismissed'] as const
const held = {
  quarantined: heldIn(INBOX_STATES.quarantined),
  expired: heldIn(INBOX_STATES.expired),
  dismissed: heldIn(INBOX_STATES.dismissed),
}

const one = statement<{ id: number }>()((db, p) =>
  db.selectFrom('inbox').select(COLUMNS).select([bodyBytes, shortBody]).select('body').where('id', '=', p.id),
)
const bytesOf = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('inbox').select(['id', 'state', 'received_at_ms', 'key_index', 'content_encoding', 'body']).where('id', 'in', oneOf(p.ids)),
)

interface Row {
  readonly id: number
  readonly state: number
  readonly reason: string | null
  readonly received_at_ms: number
  readonly key_index: number
  readonly content_encoding: string | null
  readonly duplicates: number
  readonly parcel_id: number
  readonly body_bytes: number | null
  readonly short_body: Uint8Array | null
}

interface Found {
  /** The newest first. */
  readonly rows: readonly Row[]
  /** The lowest id that was scanned; 0: all were scanned. */
  readonly downTo: number
}

export async function listInbox(session: Session, query: InboxQuery): Promise<InboxPage> {
  const { state, reason = null, parcel = null, fromMs = null, toMs = null, limit } = query
  const ends = await Promise.all([
    fromMs === null ? 1 : findFirst(session, fromMs - DISORDER_MS),
    toMs === null ? Number.MAX_SAFE_INTEGER : findFirst(session, toMs + DISORDER_MS),
  ])
  const span = { fromMs: fromMs ?? 0, toMs: toMs ?? Number.MAX_SAFE_INTEGER }
  const page = { limit, ...span, before: Math.min(query.before ?? Number.MAX_SAFE_INTEGER, ends[1]) }
  const found =
    parcel !== null
      ? merge(await findOfParcel(session, { ...page, state, reason, parcel }), limit)
      : reason !== null
        ? merge(await findOfReason(session, { ...page, state, reason }), limit)
        : state === null || state === 'recorded'
          ? await findInStretch(session, state, page)
          : merge([whole(await session.all(held[state].page, page), limit)], limit)
  return { pushes: await decodePushes(session, found.rows), next: found.downTo > ends[0] ? found.downTo : null }
}

async function findFirst(session: Session, atMs: number): Promise<number> {
  return (await session.all(firstFrom, { atMs }))[0]?.id ?? 1
}

async function findInStretch(session: Session, state: 'recorded' | null, { before, ...page }: Page): Promise<Found> {
  // Begin at the newest push before the cursor. A restore leaves a gap of up to 10^9 ids, too many to search stretch by stretch.
  const [last] = await session.all(newestBefore, { before })
  if (last === undefined) return { rows: [], downTo: 0 }
  const end = last.id + 1
  const { limit } = page
  const from = Math.max(1, end - LOOKED_AT_MAX)
  const most = state === null ? INBOX_STATES.dismissed : INBOX_STATES.recorded
  const rows = await session.all(stretch, { ...page, from, before: end, most })
  return { rows, downTo: rows.length < limit ? from : (rows.at(-1)?.id ?? from) }
}

interface Asked extends Page {
  readonly state: InboxState | null
}

async function findOfReason(session: Session, { state, ...page }: Asked & { readonly reason: string }): Promise<readonly Found[]> {
  const states = (['quarantined', 'dismissed'] as const).filter((one) => state === null || state === one)
  return await Promise.all(states.map((one) => session.all(held[one].ofReason, page).then((rows) => whole(rows, page.limit))))
}

/** Finds recorded pushes by their parcel, and other pushes by the identifiers in their bodies. */
async function findOfParcel(
  session: Session,
  asked: Asked & { readonly reason: string | null; readonly parcel: string },
): Promise<readonly Found[]> {
  const { state, parcel, ...page } = asked
  const identifiers = await session.all(namesOf, { identifier: parcel })
  const names = identifiers.length === 0 ? [parcel] : identifiers.map(({ value }) => value)
  const parcelId = identifiers[0]?.parcel_id
  const isRecorded = page.reason === null && (state === null || state === 'recorded')
  return await Promise.all([
    ...(parcelId !== undefined && isRecorded ? [findRecorded(session, { ...page, parcelId })] : []),
    ...HELD.filter((one) => state === null || state === one).map((one) => findNaming(session, one, { ...page, names })),
  ])
}

async function findRecorded(
  session: Session,
  { parcelId, before, limit, fromMs, toMs }: Page & { readonly parcelId: number },
): Promise<Found> {
  const ids = (await session.all(idsOfParcel, { parcelId })).map(({ id }) => id).filter((id) => id < before)
  const newestIds = ids.toSorted((a, b) => b - a).slice(0, limit)
  const found = newestIds.length === 0 ? [] : await session.all(byIds, { ids: newestIds })
  const rows = found.filter(({ received_at_ms: atMs }) => atMs >= fromMs && atMs < toMs)
  return { rows, downTo: newestIds.length < limit ? 0 : Math.min(...newestIds) }
}

async function findNaming(
  session: Session,
  state: (typeof HELD)[number],
  asked: Page & { readonly reason: string | null; readonly names: readonly string[] },
): Promise<Found> {
  const [end] = await session.all(held[state].end, { before: asked.before })
  const rows = await session.all(held[state].naming, { ...asked, from: end?.id ?? 1 })
  return { rows, downTo: rows.length < asked.limit ? (end?.id ?? 0) : (rows.at(-1)?.id ?? 0) }
}

/** Makes a page from the rows of a query that searched until it had `limit` rows, or to the end. */
function whole(rows: readonly Row[], limit: number): Found {
  return { rows, downTo: rows.length < limit ? 0 : Math.min(...rows.map(({ id }) => id)) }
}

/** Merges several pages into one, in the order of ids. The merged page ends at the lowest id that all of them have reached. */
function merge(found: readonly Found[], limit: number): Found {
  const downTo = Math.max(0, ...found.map((each) => each.downTo))
  const all = found.flatMap(({ rows }) => rows).toSorted((a, b) => b.id - a.id)
  const rows = all.filter(({ id }) => id >= downTo).slice(0, limit)
  return { rows, downTo: rows.length === limit ? (rows.at(-1)?.id ?? 0) : downTo }
}

export async function listNewestPushes(
  session: Session,
  limit: number,
): Promise<readonly Pick<InboxPush, 'state' | 'reason' | 'receivedAtMs'>[]> {
  const rows = await session.all(newest, { limit })
  return rows.map(({ state, reason, received_at_ms: receivedAtMs }) => ({ state: stateOf(state), reason, receivedAtMs }))
}

export async function inspectPush(session: Session, inboxId: number): Promise<InspectedPush | null> {
  const [row] = await session.all(one, { id: inboxId })
  if (row === undefined) return null
  const [push] = await decodePushes(session, [{ ...row, short_body: row.body }])
  return push === undefined ? null : { ...push, body: row.body }
}

/** Loads a push as reprocessing needs it; null if there is no such push. */
export async function findPush(session: Session, inboxId: number): Promise<HeldPush | null> {
  return (await findPushes(session, [inboxId]))[0] ?? null
}

/** Like `findPush`, for several pushes, in no particular order. */
export async function findPushes(session: Session, ids: readonly number[]): Promise<HeldPage['pushes']> {
  return (await session.all(bytesOf, { ids })).map((row) => ({
    inboxId: row.id,
    state: stateOf(row.state),
    receivedAtMs: row.received_at_ms,
    keyIndex: row.key_index,
    contentEncoding: row.content_encoding,
    body: row.body,
  }))
}

async function decodePushes(session: Session, rows: readonly Row[]): Promise<readonly InboxPush[]> {
  const parcelIds = [...new Set(rows.map((row) => row.parcel_id))].filter((id) => id !== 0)
  const names = await loadNames(session, parcelIds)
  return rows.map((row) => decodePush(row, names.get(row.parcel_id)))
}

function decodePush(row: Row, ofParcel: readonly string[] | undefined): InboxPush {
  const { short_body: body, content_encoding: contentEncoding } = row
  const { status, eventAtMs, identifiers } = body === null || contentEncoding !== null ? GLIMPSED_NOTHING : glimpseBody(body)
  return {
    inboxId: row.id,
    state: stateOf(row.state),
    reason: row.reason,
    receivedAtMs: row.received_at_ms,
    keyIndex: row.key_index,
    contentEncoding,
    duplicates: row.duplicates,
    bodyBytes: row.body_bytes,
    identifiers: ofParcel ?? identifiers,
    status,
    eventAtMs,
    fault: body === null ? null : findFault(body, row.reason),
  }
}

function stateOf(number: number): InboxState {
  if (number === INBOX_STATES.quarantined) return 'quarantined'
  if (number === INBOX_STATES.dismissed) return 'dismissed'
  return number === INBOX_STATES.expired ? 'expired' : 'recorded'
}
