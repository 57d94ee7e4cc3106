import type { Trouble } from '../../domain/delivery/operator-event.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'

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
