import { type Kysely, sql } from 'kysely'
import type { Session } from '../../core/store/engine.ts'
import { findByReference, loadContexts } from '../../core/store/history/order-contexts.ts'
import { findIdentifier, loadNames } from '../../core/store/history/parcels.ts'
import { loadBreachesOf } from '../../core/store/history/watched.ts'
import { loadSetting, removeSetting, saveSetting } from '../../core/store/settings.ts'
import { rowOf, statement } from '../../core/store/statement.ts'
import { COLUMNS, type RowOf, type Tables } from '../../core/store/tables.ts'
import type { FirstLoads, KnownBreach } from './watchdog.rules.ts'

/** When to look at a parcel of which a told breach lasts, and which no rule will find stalled: when it changes. */
const NEVER_MS = Number.MAX_SAFE_INTEGER

/** A time of looks that has come by any clock, also when ours is put back. */
export const AT_ONCE = 0

/** Sets the time of a look, unless an earlier one is set. A parcel that waits for an answer, or of which a breach lasts, is looked at now. */
const plan = statement<{ parcelId: number; dueAtMs: number }>()((db, p) =>
  db
    .insertInto('watchdog_due')
    .values({ parcel_id: p.parcelId, due_at_ms: p.dueAtMs, is_open: 0, ask_at_ms: null })
    .onConflict((conflict) =>
      conflict
        .column('parcel_id')
        .doUpdateSet((row) => ({
          due_at_ms: row
            .case()
            .when(row.or([row('watchdog_due.is_open', '=', 1), row('watchdog_due.ask_at_ms', 'is not', null)]))
            .then(AT_ONCE)
            .else(row.ref('excluded.due_at_ms'))
            .end(),
          ask_at_ms: null,
        }))
        // Most entries change nothing, and then no page is written.
        .where((row) =>
          row.or([
            row('watchdog_due.is_open', '=', 1),
            row('watchdog_due.ask_at_ms', 'is not', null),
            row('excluded.due_at_ms', '<', row.ref('watchdog_due.due_at_ms')),
          ]),
        ),
    ),
)
const lookAgain = statement<{ parcelId: number }>()((db, p) =>
  db
    .updateTable('watchdog_due')
    .set({ due_at_ms: AT_ONCE, ask_at_ms: null })
    .where('parcel_id', '=', p.parcelId)
    .where((row) => row.or([row('is_open', '=', 1), row('ask_at_ms', 'is not', null)])),
)

/** Notes that a parcel has changed. `dueAtMs`: when the change can make it stalled; null: it cannot. Costs one look into an index for most. */
export function noteChange(session: Session, parcelId: number, dueAtMs: number | null): void {
  if (dueAtMs === null) session.enqueueWrite(lookAgain, { parcelId })
  else session.enqueueWrite(plan, { parcelId, dueAtMs })
}

const due = statement<{ nowMs: number; limit: number }>()((db, p) =>
  db
    .selectFrom('watchdog_due')
    .select('parcel_id')
    .where('ask_at_ms', 'is', null)
    .where('due_at_ms', '<=', p.nowMs)
    .orderBy('due_at_ms')
    .limit(p.limit),
)
/** Also those that wait since a time ahead of the clock, which was put back. */
const waiting = statement<{ limit: number }>()((db, p) =>
  db.selectFrom('watchdog_due').select('parcel_id').where('ask_at_ms', 'is not', null).orderBy('ask_at_ms').limit(p.limit),
)
const parcelsAfter = statement<{ after: number; limit: number }>()((db, p) =>
  db.selectFrom('parcel').select(['id as parcel_id', 'entry_count']).where('id', '>', p.after).orderBy('id').limit(p.limit),
)
const watchedAfter = statement<{ after: number; limit: number }>()((db, p) =>
  db.selectFrom('watchdog_due').select('parcel_id').where('parcel_id', '>', p.after).orderBy('parcel_id').limit(p.limit),
)

async function idsOf(rows: Promise<readonly { readonly parcel_id: number }[]>): Promise<readonly number[]> {
  return (await rows).map((row) => row.parcel_id)
}

/** The parcels at which to look, the most overdue first. Reads only the rows that are due. */
export function findDue(session: Session, page: { readonly nowMs: number; readonly limit: number }) {
  return idsOf(session.all(due, page))
}

/** The parcels about which to ask the carrier before they are told to be stalled. */
export function findWaiting(session: Session, page: { readonly limit: number }) {
  return idsOf(session.all(waiting, page))
}

export function listParcelsAfter(session: Session, page: { readonly after: number; readonly limit: number }) {
  return idsOf(session.all(parcelsAfter, page))
}

/** The same, with the numbers of their entries. */
export function listSizesAfter(session: Session, page: { readonly after: number; readonly limit: number }) {
  return session.all(parcelsAfter, page)
}

/** The parcels that were watched over by rules that are gone. */
export function listWatchedAfter(session: Session, page: { readonly after: number; readonly limit: number }) {
  return idsOf(session.all(watchedAfter, page))
}

const save = statement<{ parcelId: number; dueAtMs: number; isOpen: number; askAtMs: number | null }>()((db, p) =>
  db
    .insertInto('watchdog_due')
    .values({ parcel_id: p.parcelId, due_at_ms: p.dueAtMs, is_open: p.isOpen, ask_at_ms: p.askAtMs })
    .onConflict((conflict) => conflict.column('parcel_id').doUpdateSet({ due_at_ms: p.dueAtMs, is_open: p.isOpen, ask_at_ms: p.askAtMs })),
)
const remove = statement<{ parcelId: number }>()((db, p) => db.deleteFrom('watchdog_due').where('parcel_id', '=', p.parcelId))

export interface DueRow {
  readonly nextMs: number | null
  readonly isOpen: boolean
  readonly askAtMs: number | null
}

/** Saves when to look at a parcel next. */
export function saveDue(session: Session, parcelId: number, { nextMs, isOpen, askAtMs }: DueRow): void {
  if (nextMs === null && !isOpen && askAtMs === null) session.enqueueWrite(remove, { parcelId })
  else session.enqueueWrite(save, { parcelId, dueAtMs: nextMs ?? NEVER_MS, isOpen: isOpen ? 1 : 0, askAtMs })
}

const { id: _id, ...BREACH } = COLUMNS.watchdog_breach
const insert = statement<RowOf<typeof BREACH>>()((db, p) =>
  db
    .insertInto('watchdog_breach')
    .values(rowOf(BREACH, p))
    .onConflict((conflict) => conflict.columns(['parcel_id', 'rule', 'since_ms']).doNothing())
    .returning('id'),
)
const end = statement<{ id: number; nowMs: number }>()((db, p) =>
  db.updateTable('watchdog_breach').set({ ended_at_ms: p.nowMs }).where('id', '=', p.id),
)

interface ToldBreachRow extends Pick<KnownBreach, 'rule' | 'sinceMs'> {
  readonly parcelId: number
  readonly checked: boolean
  readonly nowMs: number
}

/** Saves that a breach is told. Null: it was told before. */
export async function addBreach(session: Session, { parcelId, rule, sinceMs, checked, nowMs }: ToldBreachRow): Promise<number | null> {
  const told = { is_checked: checked ? 1 : 0, told_at_ms: nowMs, ended_at_ms: null }
  const [row] = await session.all(insert, { parcel_id: parcelId, rule, since_ms: sinceMs, ...told })
  return row?.id ?? null
}

export function endBreach(session: Session, id: number, nowMs: number): void {
  session.enqueueWrite(end, { id, nowMs })
}

const COUNTED_MAX = 100_000

const counted = statement()((db) =>
  db
    .selectFrom((of) =>
      of.selectFrom('watchdog_due').select('parcel_id').where('ask_at_ms', 'is not', null).limit(sql.lit(COUNTED_MAX)).as('some'),
    )
    .select((of) => of.fn.countAll<number>().as('count')),
)
const openCount = statement<{ rule: string }>()((db, p) =>
  db
    .selectFrom((of) =>
      of
        .selectFrom('watchdog_breach')
        .select('id')
        .where('ended_at_ms', 'is', null)
        // Written as a range, so that PostgreSQL reads the index of the rule, whatever the statistics say.
        .where('rule', '>=', p.rule)
        .where('rule', '<=', p.rule)
        .orderBy('rule')
        .orderBy('id')
        .limit(sql.lit(COUNTED_MAX))
        .as('some'),
    )
    .select((of) => of.fn.countAll<number>().as('count')),
)

/** Of so many breaches the overview counts the parcels. */
const GLANCED_MAX = 1000

const stalled = statement()((db) =>
  db
    .selectFrom((of) =>
      of
        .selectFrom('watchdog_breach')
        .select('parcel_id')
        .where('ended_at_ms', 'is', null)
        // All rules, by their index.
        .where('rule', '>=', '')
        .orderBy('rule')
        .orderBy('id')
        .limit(sql.lit(GLANCED_MAX + 1))
        .as('some'),
    )
    .select((of) => [of.fn.countAll<number>().as('breaches'), of.fn.count<number>('parcel_id').distinct().as('parcels')]),
)

/** Counts the parcels that are stalled. `isAll` false: there are so many that not all were counted. */
export async function countStalled(session: Session): Promise<{ readonly parcels: number; readonly isAll: boolean }> {
  const [row] = await session.all(stalled, {})
  return { parcels: Number(row?.parcels ?? 0), isAll: Number(row?.breaches ?? 0) <= GLANCED_MAX }
}

/** Counts the parcels that are told to be stalled once the carrier has been asked, up to 100,000. */
export async function countWaiting(session: Session): Promise<number> {
  const [row] = await session.all(counted, {})
  return Number(row?.count ?? 0)
}

/** Counts the breaches that last, by rule, up to 100,000 of each. */
export async function countOpen(session: Session): Promise<ReadonlyMap<string, number>> {
  const { rules } = await loadStoredRules(session)
  const counts = rules.map(async ({ name: rule }) => {
    const [row] = await session.all(openCount, { rule })
    return [rule, Number(row?.count ?? 0)] as const
  })
  return new Map(await Promise.all(counts))
}

const breaches = (db: Kysely<Tables>, p: { readonly before: number; readonly limit: number }) =>
  db.selectFrom('watchdog_breach').selectAll().where('id', '<', p.before).orderBy('id', 'desc').limit(p.limit)
const anyBreach = statement<{ before: number; limit: number }>()(breaches)
const ofRule = statement<{ rule: string; before: number; limit: number }>()((db, p) => breaches(db, p).where('rule', '=', p.rule))
const open = statement<{ before: number; limit: number }>()((db, p) => breaches(db, p).where('ended_at_ms', 'is', null))
const openOfRule = statement<{ rule: string; before: number; limit: number }>()((db, p) =>
  breaches(db, p).where('ended_at_ms', 'is', null).where('rule', '=', p.rule),
)
const ofParcel = statement<{ parcelId: number }>()((db, p) =>
  db.selectFrom('watchdog_breach').selectAll().where('parcel_id', '=', p.parcelId).orderBy('id', 'desc'),
)

export interface BreachFilter {
  /** Null: all rules. */
  readonly rule: string | null
  readonly isOpen: boolean
  /** Only breaches with lower ids. */
  readonly before: number
  readonly limit: number
}

export interface ListedBreach extends KnownBreach {
  readonly parcelId: number
  readonly identifiers: readonly string[]
  /** The number of the order; null: nobody has said it. */
  readonly reference: string | null
  readonly checked: boolean
}

/** Lists breaches, the one that was told last first. */
export async function listBreaches(session: Session, { rule, isOpen, ...page }: BreachFilter): Promise<readonly ListedBreach[]> {
  const rows = await (rule === null
    ? session.all(isOpen ? open : anyBreach, page)
    : session.all(isOpen ? openOfRule : ofRule, { ...page, rule }))
  return await named(session, rows)
}

/** Lists the breaches of a parcel, which are few; null: no parcel has the identifier. */
export async function listBreachesOfParcel(session: Session, identifier: string): Promise<readonly ListedBreach[] | null> {
  const parcel = await findIdentifier(session, identifier)
  return parcel === null ? null : await named(session, await session.all(ofParcel, { parcelId: parcel.parcelId }))
}

/** So many parcels of an order are looked at for a page. */
export const PARCELS_AT_ONCE = 100

/** Where a page of an order's breaches begins: at a parcel, and of that only with breaches of lower ids. */
export interface OrderPlace {
  readonly parcelId: number
  readonly before: number
}

interface OrderFilter extends Pick<BreachFilter, 'rule' | 'isOpen' | 'limit'> {
  readonly reference: string
  readonly from: OrderPlace
}

/**
 * Lists the breaches of an order, parcel by parcel in the order of their ids, of each the one that was told last first. A page may hold few, because it
 * looks at some parcels only. Null: no parcel from there on belongs to the order.
 */
export async function listBreachesOfOrder(
  session: Session,
  { reference, rule, isOpen, from, limit }: OrderFilter,
): Promise<{ readonly breaches: readonly ListedBreach[]; readonly next: OrderPlace | null } | null> {
  const ids = await findByReference(session, { reference, after: from.parcelId - 1, limit: PARCELS_AT_ONCE })
  const lastId = ids.at(-1)
  if (lastId === undefined) return null
  const found = (await loadBreachesOf(session, ids))
    .filter((row) => row.parcel_id > from.parcelId || row.id < from.before)
    .filter((row) => (rule === null || row.rule === rule) && (!isOpen || row.ended_at_ms === null))
    .toSorted((one, other) => one.parcel_id - other.parcel_id || other.id - one.id)
  const shown = found.slice(0, limit)
  const last = found.length > limit ? shown.at(-1) : undefined
  const rest = ids.length === PARCELS_AT_ONCE ? { parcelId: lastId, before: 0 } : null
  return { breaches: await named(session, shown), next: last === undefined ? rest : { parcelId: last.parcel_id, before: last.id } }
}

type BreachRow = typeof ofParcel extends { types?: (params: never) => infer Row } ? Row : never

async function named(session: Session, rows: readonly BreachRow[]): Promise<readonly ListedBreach[]> {
  const ids = [...new Set(rows.map((row) => row.parcel_id))]
  const [names, contexts] = await Promise.all([loadNames(session, ids), loadContexts(session, ids)])
  return rows.map((row) => ({
    id: row.id,
    parcelId: row.parcel_id,
    identifiers: names.get(row.parcel_id) ?? [],
    reference: contexts.get(row.parcel_id)?.reference ?? null,
    rule: row.rule,
    sinceMs: row.since_ms,
    checked: row.is_checked === 1,
    toldAtMs: row.told_at_ms,
    endedAtMs: row.ended_at_ms,
  }))
}

const SETTING = 'watchdogs'
const AGAIN_SETTING = 'watchdogs-again'
const HELD_SETTING = 'watchdogs-held'

/** What the store knows of the rules. `sweptTo`: while rules have changed, the last parcel that was judged by the new ones; null: all were. */
export interface StoredRules {
  readonly rules: readonly { readonly name: string; readonly rule: string; readonly loadedAtMs: number }[]
  readonly sweptTo: number | null
  /** Whether replicas had different configs when the poller last looked, and may have noted by other rules what their pushes begin; absent: no. */
  readonly isMixed?: boolean
}

/** Only the poller writes them, so they need no lock. */
export async function loadStoredRules(session: Session): Promise<StoredRules> {
  const stored = await loadSetting(session, SETTING)
  if (stored === null) return { rules: [], sweptTo: null }
  // Only `saveStoredRules` writes it, so its shape is certain.
  // oxlint-disable-next-line typescript/consistent-type-assertions -- see above
  return JSON.parse(Buffer.from(stored).toString()) as StoredRules
}

export async function saveStoredRules(session: Session, rules: StoredRules): Promise<void> {
  await saveSetting(session, SETTING, Buffer.from(JSON.stringify(rules)))
}

/** Asks the poller to judge all parcels anew: what this replica has recorded until now was noted by other rules. */
export async function askForSweep(session: Session): Promise<void> {
  await saveSetting(session, AGAIN_SETTING, new Uint8Array())
}

/** Returns whether any replica has asked for it, once. */
export async function takeSweepOrder(session: Session): Promise<boolean> {
  if ((await loadSetting(session, AGAIN_SETTING)) === null) return false
  removeSetting(session, AGAIN_SETTING)
  return true
}

/** When each rule was first loaded as it is now. */
export async function loadFirstLoads(session: Session): Promise<FirstLoads> {
  return new Map((await loadStoredRules(session)).rules.map(({ name, loadedAtMs }) => [name, loadedAtMs]))
}

/** Since when verdicts are held back; null: they are not. */
export async function heldSinceMs(session: Session): Promise<number | null> {
  const stored = await loadSetting(session, HELD_SETTING)
  return stored === null ? null : Number(Buffer.from(stored).toString())
}

/** Notes since when verdicts are held back; null: they are not. */
export async function saveHeldSince(session: Session, sinceMs: number | null): Promise<void> {
  if (sinceMs === null) removeSetting(session, HELD_SETTING)
  else await saveSetting(session, HELD_SETTING, Buffer.from(String(sinceMs)))
}
