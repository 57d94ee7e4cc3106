import type { Audited, OperatorAction } from '../domain/admin/operator-action.ts'
import type { WriteTx } from './write-store.ts'

/** Writes into the audit trail that an order was carried out, in the transaction that does. `found`: what only that has found out. */
export function audit(tx: Pick<WriteTx, 'addAction'>, { action }: Audited, found: OperatorAction['detail'] = {}): void {
  if (action !== undefined) tx.addAction({ ...action, detail: { ...action.detail, ...found } })
}
