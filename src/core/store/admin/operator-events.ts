import { sql } from 'kysely'
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
