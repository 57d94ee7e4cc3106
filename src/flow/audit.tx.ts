import type { Audited, OperatorAction } from '../domain/admin/operator-action.ts'
import type { WriteTx } from '../store/write-store.ts'

export type AuditTx = Pick<WriteTx, 'addAction'>

/** Adds an order to the audit trail, in the transaction that carries out the order. `found`: details that only carrying it out has shown. */
export function audit(tx: AuditTx, { action }: Audited, found: OperatorAction['detail'] = {}): void {
  if (action !== undefined) tx.addAction({ ...action, detail: { ...action.detail, ...found } })
}
