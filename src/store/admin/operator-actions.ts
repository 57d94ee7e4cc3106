import { sql } from 'kysely'
import type { ActionQuery, KeptAction, OperatorAction } from '../../domain/admin/operator-action.ts'
import type { Session } from '../engine.ts'
import { statement } from '../statement.ts'
import { decodeDetail } from './operator-events.ts'

const insert = statement<{
  atMs: number
  byKind: string
  byName: string
  address: string | null
  action: string
  targetKind: string | null
  target: string | null
  detail: string
}>()((db, p) =>
  db.insertInto('operator_action').values({
    at_ms: p.atMs,
    by_kind: p.byKind,
    by_name: p.byName,
    address: p.address,
    action: p.action,
    target_kind: p.targetKind,
    target: p.target,
    detail: p.detail,
  }),
)
const newest = statement<{ atMs: number; id: number; limit: number }>()((db, p) =>
  db
    .selectFrom('operator_action')
    .selectAll()
    .where(sql<boolean>`(at_ms, id) < (${p.atMs}, ${p.id})`)
    .orderBy('at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(p.limit),
)
const old = statement<{ beforeMs: number; limit: number }>()((db, p) =>
  db.selectFrom('operator_action').select(['at_ms', 'id']).where('at_ms', '<', p.beforeMs).orderBy('at_ms').orderBy('id').limit(p.limit),
)
const removeUpTo = statement<{ atMs: number; id: number }>()((db, p) =>
  db.deleteFrom('operator_action').where('at_ms', '<=', p.atMs).where(sql<boolean>`(at_ms, id) <= (${p.atMs}, ${p.id})`),
)

export function insertAction(session: Session, { atMs, by, action, target, detail }: OperatorAction): void {
  session.enqueueWrite(insert, {
    atMs,
    byKind: by.kind,
    byName: by.name,
    address: by.address,
    action,
    targetKind: target?.kind ?? null,
    target: target?.id ?? null,
    detail: JSON.stringify(detail),
  })
}

/** Lists actions, the newest first. */
export async function listActions(session: Session, { before, limit }: ActionQuery): Promise<readonly KeptAction[]> {
  const { atMs, id } = before ?? { atMs: Number.MAX_SAFE_INTEGER, id: 0 }
  const rows = await session.all(newest, { atMs, id, limit })
  return rows.map((row) => ({
    id: row.id,
    atMs: row.at_ms,
    by: { kind: row.by_kind, name: row.by_name, address: row.address },
    action: row.action,
    target: row.target_kind === null || row.target === null ? null : { kind: row.target_kind, id: row.target },
    detail: decodeDetail(row.detail),
  }))
}

/** Deletes up to `limit` actions that are older than `beforeMs`. Returns how many it deleted. */
export async function pruneActions(session: Session, beforeMs: number, limit: number): Promise<number> {
  const rows = await session.all(old, { beforeMs, limit })
  const last = rows.at(-1)
  if (last !== undefined) await session.run(removeUpTo, { atMs: last.at_ms, id: last.id })
  return rows.length
}
