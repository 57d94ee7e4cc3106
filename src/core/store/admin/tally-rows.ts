import { REPORT_SPAN, SPANS, spanStart, type Tally, type TallyAddition, type TallyFlush, type TallySpan } from '../../domain/admin/tally.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import { decodeDetail } from './operations.ts'

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

type StoredSpan = TallySpan | typeof REPORT_SPAN

/** Stores the number of a process's last flush. False: it was already stored, by a transaction whose answer was lost after its commit. */
export async function noteFlush(session: Session, { by, number, additions }: TallyFlush): Promise<boolean> {
  const fromMs = Math.max(0, ...additions.map((addition) => addition.fromMs))
  return (await session.all(noteTally, { kind: `flush:${by}`, fromMs, counts: JSON.stringify({ number }) })).length > 0
}

/** All replicas lock the rows in the same order, so they cannot deadlock. */
export function addTallies(session: Session, additions: readonly TallyAddition[]): void {
  const isOfReport = ({ kind }: TallyAddition) => kind === 'report'
  const counted = additions.filter((addition) => !isOfReport(addition))
  const rows = SPANS.flatMap((span) => counted.map(({ kind, fromMs, counts }) => ({ span, kind, fromMs: spanStart(span, fromMs), counts })))
  addRows(session, [...rows, ...additions.filter(isOfReport).map((addition) => ({ ...addition, span: REPORT_SPAN }))])
}

/** Adds counts to days of the carrier's report. `kind`: `report`, or the corrections of a month. */
export function addReportTallies(session: Session, additions: readonly (Tally & { readonly kind: string })[]): void {
  addRows(
    session,
    additions.map((addition) => ({ ...addition, span: REPORT_SPAN })),
  )
}

function addRows(session: Session, rows: readonly (Tally & { readonly kind: string; readonly span: string })[]): void {
  const order = ({ span, kind, fromMs }: (typeof rows)[number]) => `${span} ${kind} ${fromMs}`
  for (const { counts, ...row } of rows.toSorted((a, b) => (order(a) < order(b) ? -1 : 1)))
    session.enqueueWrite(row.kind === 'disk' ? lowerTally : addTally, { ...row, counts: JSON.stringify(counts) })
}

/** Lists tallies from `fromMs` until before `toMs`, oldest first. */
export async function listTallies(
  session: Session,
  query: { readonly span: StoredSpan; readonly kind: string; readonly fromMs: number; readonly toMs: number },
): Promise<readonly Tally[]> {
  const rows = await session.all(listTally, query)
  return rows.map(({ from_ms: fromMs, counts }) => ({ fromMs, counts: numbersOf(decodeDetail(counts)) }))
}

function numbersOf(counts: Readonly<Record<string, unknown>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Number(count)]))
}

/** Skips the `newer` newest hours or days with counts, and returns the beginning of the next older one. Null: there is none. */
export async function findCounted(session: Session, span: StoredSpan, newer: number): Promise<number | null> {
  const [row] = await session.all(counted, { span, newer })
  return row?.from_ms ?? null
}

/** Deletes up to `limit` tallies that begin before `beforeMs`. Returns how many it deleted. */
export async function pruneTallies(session: Session, span: StoredSpan, beforeMs: number, limit: number): Promise<number> {
  const rows = await session.all(oldTallies, { span, beforeMs, limit })
  for (const { kind, from_ms: fromMs } of rows) session.enqueueWrite(removeTally, { span, kind, fromMs })
  return rows.length
}
