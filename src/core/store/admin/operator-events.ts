import { sql } from 'kysely'
import { CERTIFICATE_SUBJECTS, type Trouble } from '../../../console/problems/trouble.ts'
import { SPANS, spanStart, type Tally, type TallyAddition, type TallyFlush, type TallySpan } from '../../domain/admin/tally.ts'
import type { OperatorEvent, OperatorEventQuery, ToldEvent } from '../../domain/delivery/operator-event.ts'
import { isObject, parseStored } from '../../domain/json-body.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

const insert = statement<{ atMs: number; event: string; detail: string }>()((db, p) =>
  db.insertInto('operator_event').values({ at_ms: p.atMs, event: p.event, detail: p.detail }),
)
type Page = { readonly fromMs: number; readonly toMs: number; readonly atMs: number; readonly id: number; readonly limit: number }
const newest = statement<Page>()((db, p) =>
  db
    .selectFrom('operator_event')
    .selectAll()
    .where('at_ms', '>=', p.fromMs)
    .where('at_ms', '<', p.toMs)
    .where(sql<boolean>`(at_ms, id) < (${p.atMs}, ${p.id})`)
    .orderBy('at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(p.limit),
)
const newestOf = statement<Page & { readonly event: string }>()((db, p) =>
  db
    .selectFrom('operator_event')
    .selectAll()
    .where('event', '=', p.event)
    .where('at_ms', '>=', p.fromMs)
    .where('at_ms', '<', p.toMs)
    .where(sql<boolean>`(at_ms, id) < (${p.atMs}, ${p.id})`)
    .orderBy('at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(p.limit),
)
const old = statement<{ beforeMs: number; limit: number }>()((db, p) =>
  db.selectFrom('operator_event').select(['at_ms', 'id']).where('at_ms', '<', p.beforeMs).orderBy('at_ms').orderBy('id').limit(p.limit),
)
const removeUpTo = statement<{ atMs: number; id: number }>()((db, p) =>
  db.deleteFrom('operator_event').where('at_ms', '<=', p.atMs).where(sql<boolean>`(at_ms, id) <= (${p.atMs}, ${p.id})`),
)

export function addOperatorEvent(session: Session, { event, ...detail }: OperatorEvent, atMs: number): void {
  session.enqueueWrite(insert, { atMs, event, detail: JSON.stringify(detail) })
}

export async function listOperatorEvents(session: Session, query: OperatorEventQuery): Promise<readonly ToldEvent[]> {
  const { event, fromMs, toMs, before, limit } = query
  const { atMs, id } = before ?? { atMs: Number.MAX_SAFE_INTEGER, id: 0 }
  const page = { fromMs: fromMs ?? 0, toMs: toMs ?? Number.MAX_SAFE_INTEGER, atMs, id, limit }
  const rows = event === null ? await session.all(newest, page) : await session.all(newestOf, { ...page, event })
  return rows.map((row) => ({ id: row.id, atMs: row.at_ms, event: row.event, detail: decodeDetail(row.detail) }))
}

/** Deletes up to `limit` events that are older than `beforeMs`. Returns how many it deleted. */
export async function pruneOperatorEvents(session: Session, beforeMs: number, limit: number): Promise<number> {
  const rows = await session.all(old, { beforeMs, limit })
  const last = rows.at(-1)
  if (last !== undefined) await session.run(removeUpTo, { atMs: last.at_ms, id: last.id })
  return rows.length
}

/** Parses the stored details of an event or an action. Details that are damaged say so. */
export function decodeDetail(text: string): Readonly<Record<string, unknown>> {
  const detail = parseStored(text)
  if (detail === undefined) return { unreadable: true }
  return isObject(detail) ? { ...detail } : {}
}

type Added = { readonly span: string; readonly kind: string; readonly fromMs: number; readonly counts: string }

/** `how`: what to store if the hour or day already has a count: the sum of both counts, or the smaller one. */
const saveTally = (how: 'sum' | 'min') =>
  statement<Added>()((db, p, { summed }) =>
    db
      .insertInto('tally')
      .values({ span: p.span, kind: p.kind, from_ms: p.fromMs, counts: p.counts })
      .onConflict((conflict) =>
        conflict
          .columns(['span', 'kind', 'from_ms'])
          .doUpdateSet(({ ref }) => ({ counts: summed(ref('tally.counts'), ref('excluded.counts'), how) })),
      ),
  )
const addTally = saveTally('sum')
const lowerTally = saveTally('min')
/**
 * Stores the number of a `TallyFlush`. The number is stored as a tally, so that `pruneTallies` deletes it too. The statement locks the row
 * before it compares the numbers, so it waits for another transaction that stores the same flush.
 */
const noteTally = statement<Omit<Added, 'span'>>()((db, p) =>
  db
    .insertInto('tally')
    .values({ span: 'hour', kind: p.kind, from_ms: p.fromMs, counts: p.counts })
    .onConflict((conflict) =>
      conflict
        .columns(['span', 'kind', 'from_ms'])
        .doUpdateSet(({ ref }) => ({ counts: ref('excluded.counts') }))
        .whereRef('tally.counts', '!=', 'excluded.counts'),
    )
    .returning('from_ms'),
)
const listTally = statement<{ span: string; kind: string; fromMs: number; toMs: number }>()((db, p) =>
  db
    .selectFrom('tally')
    .select(['from_ms', 'counts'])
    .where('span', '=', p.span)
    .where('kind', '=', p.kind)
    .where('from_ms', '>=', p.fromMs)
    .where('from_ms', '<', p.toMs)
    .orderBy('from_ms'),
)
const oldTallies = statement<{ span: string; beforeMs: number; limit: number }>()((db, p) =>
  db
    .selectFrom('tally')
    .select(['kind', 'from_ms'])
    .where('span', '=', p.span)
    .where('from_ms', '<', p.beforeMs)
    .orderBy('from_ms')
    .limit(p.limit),
)
const counted = statement<{ span: string; newer: number }>()((db, p) =>
  db.selectFrom('tally').select('from_ms').distinct().where('span', '=', p.span).orderBy('from_ms', 'desc').limit(1).offset(p.newer),
)
const removeTally = statement<{ span: string; kind: string; fromMs: number }>()((db, p) =>
  db.deleteFrom('tally').where('span', '=', p.span).where('kind', '=', p.kind).where('from_ms', '=', p.fromMs),
)

/** Stores the number of a process's last flush. False: it was already stored, by a transaction whose answer was lost after its commit. */
export async function noteFlush(session: Session, { by, number, additions }: TallyFlush): Promise<boolean> {
  const fromMs = Math.max(0, ...additions.map((addition) => addition.fromMs))
  return (await session.all(noteTally, { kind: `flush:${by}`, fromMs, counts: JSON.stringify({ number }) })).length > 0
}

/** All replicas lock the rows in the same order, so they cannot deadlock. */
export function addTallies(session: Session, additions: readonly TallyAddition[]): void {
  const rows = SPANS.flatMap((span) =>
    additions.map(({ kind, fromMs, counts }) => ({ span, kind, fromMs: spanStart(span, fromMs), counts })),
  )
  const order = ({ span, kind, fromMs }: (typeof rows)[number]) => `${span} ${kind} ${fromMs}`
  for (const { counts, ...row } of rows.toSorted((a, b) => (order(a) < order(b) ? -1 : 1)))
    session.enqueueWrite(row.kind === 'disk' ? lowerTally : addTally, { ...row, counts: JSON.stringify(counts) })
}

/** Lists tallies from `fromMs` until before `toMs`, oldest first. */
export async function listTallies(
  session: Session,
  query: { readonly span: TallySpan; readonly kind: string; readonly fromMs: number; readonly toMs: number },
): Promise<readonly Tally[]> {
  const rows = await session.all(listTally, query)
  return rows.map(({ from_ms: fromMs, counts }) => ({ fromMs, counts: numbersOf(decodeDetail(counts)) }))
}

function numbersOf(counts: Readonly<Record<string, unknown>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Number(count)]))
}

/** Skips the `newer` newest hours or days with counts, and returns the beginning of the next older one. Null: there is none. */
export async function findCounted(session: Session, span: TallySpan, newer: number): Promise<number | null> {
  const [row] = await session.all(counted, { span, newer })
  return row?.from_ms ?? null
}

/** Deletes up to `limit` tallies that begin before `beforeMs`. Returns how many it deleted. */
export async function pruneTallies(session: Session, span: TallySpan, beforeMs: number, limit: number): Promise<number> {
  const rows = await session.all(oldTallies, { span, beforeMs, limit })
  for (const { kind, from_ms: fromMs } of rows) session.enqueueWrite(removeTally, { span, kind, fromMs })
  return rows.length
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

/**
 * Deletes troubles about certificates that began before a time, because these certificates have expired by now. `endTrouble` removes every other
 * trouble when it is over.
 */
export async function pruneTroubles(session: Session, beforeMs: number): Promise<void> {
  await session.run(removeOldTroubles, { beforeMs, from: CERTIFICATE_SUBJECTS, to: `${CERTIFICATE_SUBJECTS}${AFTER_ALL}` })
}
