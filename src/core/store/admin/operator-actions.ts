import { type Selectable, sql } from 'kysely'
import { type FormerOrder, type KeptAction, type OperatorAction, SHOWN_AGAIN_MS } from '../../domain/admin/operator-action.ts'
import type { Session } from '../engine.ts'
import type { Tables } from '../schema.ts'
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
  form: string | null
  formDetail: string | null
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
    form: p.form,
    form_detail: p.formDetail,
  }),
)
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
    atMs,
    byKind: by.kind,
    byName: by.name,
    address: by.address,
    action,
    targetKind: target?.kind ?? null,
    target: target?.id ?? null,
    detail: JSON.stringify(detail),
    form: by.form?.id ?? null,
    formDetail: by.form === undefined ? null : JSON.stringify({ fields: by.form.fields, shown }),
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

export function actionIn(row: Selectable<Tables['operator_action']>): KeptAction {
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
