import { type Selectable, sql } from 'kysely'
import {
  type ActionPage,
  type ActionQuery,
  type FormerOrder,
  type KeptAction,
  LISTED_LENGTH_MAX,
  type ListedTarget,
  type OperatorAction,
  SHOWN_AGAIN_MS,
} from '../../domain/admin/operator-action.ts'
import type { OperatorEvent, OperatorEventQuery, TimeCursor, ToldEvent, Trouble } from '../../domain/delivery/operator-event.ts'
import { isObject, parseStored } from '../../domain/json-body.ts'
import type { Session } from '../engine.ts'
import { rowOf, statement } from '../statement.ts'
import { COLUMNS, type RowOf, type Tables } from '../tables.ts'

const { id: _id, ...ACTION } = COLUMNS.operator_action
const insert = statement<RowOf<typeof ACTION>>()((db, p) => db.insertInto('operator_action').values(rowOf(ACTION, p)))
const ofForm = statement<{ form: string }>()((db, p) => db.selectFrom('operator_action').selectAll().where('form', '=', p.form))
const forget = statement<{ beforeMs: number }>()((db, p) =>
  db.updateTable('operator_action').set({ form_detail: null }).where('form_detail', 'is not', null).where('at_ms', '<', p.beforeMs),
)
const old = statement<{ beforeMs: number; limit: number }>()((db, p) =>
  db.selectFrom('operator_action').select(['at_ms', 'id']).where('at_ms', '<', p.beforeMs).orderBy('at_ms').orderBy('id').limit(p.limit),
)
const removeUpTo = statement<{ atMs: number; id: number }>()((db, p) =>
  db.deleteFrom('operator_action').where('at_ms', '<=', p.atMs).where(sql<boolean>`(at_ms, id) <= (${p.atMs}, ${p.id})`),
)

/** If a form gave the order, and has given an order before, the transaction fails. */
export function addAction(session: Session, { atMs, by, action, target, detail, shown = null }: OperatorAction): void {
  if (by.form !== undefined) session.enqueueWrite(forget, { beforeMs: atMs - SHOWN_AGAIN_MS })
  session.enqueueWrite(insert, {
    at_ms: atMs,
    by_kind: by.kind,
    by_name: by.name,
    address: by.address,
    action,
    target_kind: target?.kind ?? null,
    target: target?.id ?? null,
    detail: JSON.stringify(detail),
    form: by.form?.id ?? null,
    form_detail: by.form === undefined ? null : JSON.stringify({ fields: by.form.fields, shown }),
  })
}

/** Removes what is kept for forms that are sent again. Their ids stay, so they still do nothing twice. */
export function forgetForms(session: Session): void {
  session.enqueueWrite(forget, { beforeMs: Number.MAX_SAFE_INTEGER })
}

/** Finds the order that a form has given; null: it has given none. */
export async function findFormerOrder(session: Session, form: string): Promise<FormerOrder | null> {
  const [row] = await session.all(ofForm, { form })
  if (row === undefined) return null
  const { fields = null, shown = null } = row.form_detail === null ? {} : decodeDetail(row.form_detail)
  return { action: actionIn(row), fields: typeof fields === 'string' ? fields : null, shown }
}

function actionIn(row: Selectable<Tables['operator_action']>): KeptAction {
  return {
    id: row.id,
    atMs: row.at_ms,
    by: { kind: row.by_kind, name: row.by_name, address: row.address },
    action: row.action,
    target: row.target_kind === null || row.target === null ? null : { kind: row.target_kind, id: row.target },
    detail: decodeDetail(row.detail),
  }
}

/** Deletes up to `limit` actions that are older than `beforeMs`. Returns how many it deleted. */
export async function pruneActions(session: Session, beforeMs: number, limit: number): Promise<number> {
  const rows = await session.all(old, { beforeMs, limit })
  const last = rows.at(-1)
  if (last !== undefined) await session.run(removeUpTo, { atMs: last.at_ms, id: last.id })
  return rows.length
}

/** The most actions about one thing that a page looks at, to find those of a name or of a kind. */
const LOOKED_AT_MAX = 2000

type Column = 'by_name' | 'action' | 'target_kind' | 'target'
type Wanted = { readonly fromMs: number; readonly beforeMs: number; readonly beforeId: number; readonly limit: number } & Readonly<
  Record<Column, string>
>

/**
 * Selects by an index that begins with `columns` and ends with the time and the id. Comparing and ordering by all of its columns leaves the
 * planner no other index, however common it believes a value to be.
 */
function listing(columns: readonly Column[]) {
  const key = [...columns, 'at_ms', 'id'].map((column) => sql.ref(column))
  // The indexes leave out long values, so they apply only to a statement that does, too.
  const long = columns.filter((column) => column === 'by_name' || column === 'target')
  return statement<Wanted>()((db, p) => {
    const keyAt = (atMs: number, id: number) => sql.join([...columns.map((column) => p[column]), atMs, id])
    const conditions = [
      sql<boolean>`(${sql.join(key)}) < (${keyAt(p.beforeMs, p.beforeId)})`,
      sql<boolean>`(${sql.join(key)}) >= (${keyAt(p.fromMs, 0)})`,
      ...long.map((column) => sql<boolean>`length(${sql.ref(column)}) <= ${sql.lit(LISTED_LENGTH_MAX)}`),
    ]
    const all = db.selectFrom('operator_action').selectAll().limit(p.limit)
    return key.reduce(
      (query, column) => query.orderBy(column, 'desc'),
      all.where((row) => row.and(conditions)),
    )
  })
}

const ofAll = listing([])
const ofName = listing(['by_name'])
const ofAction = listing(['action'])
const ofNameAndAction = listing(['by_name', 'action'])
const ofTarget = listing(['target_kind', 'target'])

type Asked = Omit<ActionQuery, 'targets'>

/** Lists actions, the newest first. */
export async function listActions(session: Session, { targets = null, ...query }: ActionQuery): Promise<ActionPage> {
  if (targets === null) return await listAny(session, query)
  const pages = await Promise.all(targets.map((target) => listAbout(session, query, target)))
  // What is older than the end of one of the pages is left to the next page.
  const end = pages.flatMap(({ next }) => next ?? []).toSorted(newestFirst)[0] ?? null
  const known = pages.flatMap(({ actions }) => actions).filter((action) => end === null || newestFirst(action, end) <= 0)
  return pageOf(known.toSorted(newestFirst), query.limit, end)
}

async function listAny(session: Session, query: Asked): Promise<ActionPage> {
  const { by = null, action = null, limit } = query
  const [withName, any] = action === null ? [ofName, ofAll] : [ofNameAndAction, ofAction]
  const rows = await session.all(by === null ? any : withName, wantedOf(query, { kind: '', id: '' }, limit))
  return pageOf(rows.map(actionIn), limit, rows.length < limit ? null : cursorOf(rows.at(-1)))
}

async function listAbout(session: Session, query: Asked, target: ListedTarget): Promise<ActionPage> {
  const { by = null, action = null, limit } = query
  const most = by === null && action === null ? limit : LOOKED_AT_MAX
  const rows = await session.all(ofTarget, wantedOf(query, target, most))
  const found = rows.filter((row) => (by === null || row.by_name === by) && (action === null || row.action === action))
  return pageOf(found.map(actionIn), limit, rows.length < most ? null : cursorOf(rows.at(-1)))
}

/** `next`: where the actions end; null: there are no more. */
function pageOf(actions: readonly KeptAction[], limit: number, next: TimeCursor | null): ActionPage {
  const last = actions.length > limit ? actions[limit - 1] : undefined
  return { actions: actions.slice(0, limit), next: last === undefined ? next : { atMs: last.atMs, id: last.id } }
}

function wantedOf({ before, by = null, action = null, fromMs = null, toMs = null }: Asked, target: ListedTarget, limit: number): Wanted {
  const end: TimeCursor = { atMs: toMs ?? Number.MAX_SAFE_INTEGER, id: 0 }
  const { atMs, id } = before === null || newestFirst(before, end) < 0 ? end : before
  const columns = { by_name: by ?? '', action: action ?? '', target_kind: target.kind, target: target.id }
  return { ...columns, fromMs: fromMs ?? 0, beforeMs: atMs, beforeId: id, limit }
}

function newestFirst(one: TimeCursor, other: TimeCursor): number {
  return other.atMs - one.atMs || other.id - one.id
}

function cursorOf(row: { readonly at_ms: number; readonly id: number } | undefined): TimeCursor | null {
  return row === undefined ? null : { atMs: row.at_ms, id: row.id }
}

const knownParcels = statement<{ values: readonly string[] }>()((db, p, { oneOfTexts }) =>
  db.selectFrom('identifier').select('value as id').where('value', 'in', oneOfTexts(p.values)),
)
const knownDeliveries = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('delivery').select('id').where('id', 'in', oneOf(p.ids)),
)
const knownPushes = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.selectFrom('inbox').select('id').where('id', 'in', oneOf(p.ids)),
)

/** Returns which of these parcels, deliveries and pushes exist. Leaves out things of other kinds. */
export async function existingTargets(session: Session, targets: readonly ListedTarget[]): Promise<readonly ListedTarget[]> {
  const idsOf = (of: string) => targets.flatMap(({ kind, id }) => (kind === of ? id : []))
  const numbersOf = (of: string) => idsOf(of).flatMap((id) => (/^\d{1,15}$/.test(id) ? Number(id) : []))
  const [parcels, deliveries, pushes] = await Promise.all([
    session.all(knownParcels, { values: idsOf('parcel') }),
    session.all(knownDeliveries, { ids: numbersOf('delivery') }),
    session.all(knownPushes, { ids: numbersOf('push') }),
  ])
  const found = { parcel: parcels, delivery: deliveries, push: pushes }
  return Object.entries(found).flatMap(([kind, rows]) => rows.map(({ id }) => ({ kind, id: String(id) })))
}

const insertEvent = statement<{ atMs: number; event: string; detail: string }>()((db, p) =>
  db.insertInto('operator_event').values({ at_ms: p.atMs, event: p.event, detail: p.detail }),
)
type Page = { readonly fromMs: number; readonly toMs: number; readonly atMs: number; readonly id: number; readonly limit: number }
const newestOf = (isOfOne: boolean) =>
  statement<Page & { readonly event: string }>()((db, p) =>
    db
      .selectFrom('operator_event')
      .selectAll()
      .$if(isOfOne, (rows) => rows.where('event', '=', p.event))
      .where('at_ms', '>=', p.fromMs)
      .where('at_ms', '<', p.toMs)
      .where(sql<boolean>`(at_ms, id) < (${p.atMs}, ${p.id})`)
      .orderBy('at_ms', 'desc')
      .orderBy('id', 'desc')
      .limit(p.limit),
  )
const newest = { ofAll: newestOf(false), ofOne: newestOf(true) }
const oldEvents = statement<{ beforeMs: number; limit: number }>()((db, p) =>
  db.selectFrom('operator_event').select(['at_ms', 'id']).where('at_ms', '<', p.beforeMs).orderBy('at_ms').orderBy('id').limit(p.limit),
)
const removeEventsUpTo = statement<{ atMs: number; id: number }>()((db, p) =>
  db.deleteFrom('operator_event').where('at_ms', '<=', p.atMs).where(sql<boolean>`(at_ms, id) <= (${p.atMs}, ${p.id})`),
)

export function addOperatorEvent(session: Session, { event, ...detail }: OperatorEvent, atMs: number): void {
  session.enqueueWrite(insertEvent, { atMs, event, detail: JSON.stringify(detail) })
}

export async function listOperatorEvents(session: Session, query: OperatorEventQuery): Promise<readonly ToldEvent[]> {
  const { event, fromMs, toMs, before, limit } = query
  const { atMs, id } = before ?? { atMs: Number.MAX_SAFE_INTEGER, id: 0 }
  const page = { fromMs: fromMs ?? 0, toMs: toMs ?? Number.MAX_SAFE_INTEGER, atMs, id, limit }
  const rows = await session.all(event === null ? newest.ofAll : newest.ofOne, { ...page, event: event ?? '' })
  return rows.map((row) => ({ id: row.id, atMs: row.at_ms, event: row.event, detail: decodeDetail(row.detail) }))
}

/** Deletes up to `limit` events that are older than `beforeMs`. Returns how many it deleted. */
export async function pruneOperatorEvents(session: Session, beforeMs: number, limit: number): Promise<number> {
  const rows = await session.all(oldEvents, { beforeMs, limit })
  const last = rows.at(-1)
  if (last !== undefined) await session.run(removeEventsUpTo, { atMs: last.at_ms, id: last.id })
  return rows.length
}

/** Parses the stored details of an event or an action. Details that are damaged say so. */
export function decodeDetail(text: string): Readonly<Record<string, unknown>> {
  const detail = parseStored(text)
  if (detail === undefined) return { unreadable: true }
  return isObject(detail) ? { ...detail } : {}
}

const insertTrouble = statement<{ subject: string; nowMs: number }>()((db, p) =>
  db
    .insertInto('trouble')
    .values({ subject: p.subject, since_ms: p.nowMs })
    .onConflict((conflict) => conflict.column('subject').doNothing()),
)
const removeTrouble = statement<{ subject: string }>()((db, p) =>
  db.deleteFrom('trouble').where('subject', '=', p.subject).returning('since_ms'),
)
const troublesAmong = statement<{ from: string; to: string }>()((db, p) =>
  db.selectFrom('trouble').selectAll().where('subject', '>=', p.from).where('subject', '<', p.to).orderBy('subject'),
)
const upsertTrouble = statement<{ subject: string; sinceMs: number; count: number }>()((db, p) =>
  db
    .insertInto('trouble')
    .values({ subject: p.subject, since_ms: p.sinceMs, count: p.count })
    .onConflict((conflict) => conflict.column('subject').doUpdateSet({ since_ms: p.sinceMs, count: p.count })),
)

/** Stores that a trouble has begun. False: it was already stored. */
export async function beginTrouble(session: Session, subject: string, nowMs: number): Promise<boolean> {
  return (await session.run(insertTrouble, { subject, nowMs })).rows === 1
}

/** Ends a trouble. Returns when it began, in epoch milliseconds. Null: there is no such trouble. */
export async function endTrouble(session: Session, subject: string): Promise<number | null> {
  const [row] = await session.all(removeTrouble, { subject })
  return row?.since_ms ?? null
}

/** Returns when a trouble began that lasts, in epoch milliseconds; null: there is none. */
export async function troubleSinceMs(session: Session, subject: string): Promise<number | null> {
  return (await listTroubles(session, subject)).find((one) => one.subject === subject)?.sinceMs ?? null
}

/** A character that sorts after every character of a subject. */
const AFTER_ALL = '\uffff'

/** Lists the troubles whose subjects begin with a prefix. */
export async function listTroubles(session: Session, prefix: string): Promise<readonly Trouble[]> {
  const rows = await session.all(troublesAmong, { from: prefix, to: `${prefix}${AFTER_ALL}` })
  return rows.map(({ subject, since_ms: sinceMs, count }) => ({ subject, sinceMs, count }))
}

export async function saveTrouble(session: Session, trouble: Trouble): Promise<void> {
  await session.run(upsertTrouble, trouble)
}

const insertCount = statement<{ nowMs: number; reason: string; count: number }>()((db, p) =>
  db.insertInto('quarantine_count').values({ at_ms: p.nowMs, reason: p.reason, count: p.count }),
)
const counts = statement<{ limit: number }>()((db, p) => db.selectFrom('quarantine_count').select('id').orderBy('id').limit(p.limit))
const removeCounts = statement<{ ids: readonly number[] }>()((db, p, { oneOf }) =>
  db.deleteFrom('quarantine_count').where('id', 'in', oneOf(p.ids)).returningAll(),
)

/** Stores how many pushes were quarantined. `takeQuarantineCounts` returns this, to notify operators. */
export function countQuarantine(session: Session, reason: string, count: number, nowMs: number): void {
  session.enqueueWrite(insertCount, { nowMs, reason, count })
}

/** Removes and returns up to `limit` records of `countQuarantine`, oldest first. */
export async function takeQuarantineCounts(
  session: Session,
  limit: number,
): Promise<readonly { readonly atMs: number; readonly reason: string; readonly count: number }[]> {
  const oldest = await session.all(counts, { limit })
  const rows = oldest.length === 0 ? [] : await session.all(removeCounts, { ids: oldest.map(({ id }) => id) })
  return rows.map(({ at_ms: atMs, reason, count }) => ({ atMs, reason, count }))
}

const removeOldTroubles = statement<{ beforeMs: number; from: string; to: string }>()((db, p) =>
  db.deleteFrom('trouble').where('subject', '>=', p.from).where('subject', '<', p.to).where('since_ms', '<', p.beforeMs),
)

/** Deletes troubles whose subjects begin with a prefix and that began before a time. For troubles that nothing ends with `endTrouble`. */
export async function pruneTroubles(session: Session, prefix: string, beforeMs: number): Promise<void> {
  await session.run(removeOldTroubles, { beforeMs, from: prefix, to: `${prefix}${AFTER_ALL}` })
}
