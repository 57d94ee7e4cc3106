import type { Audited, OperatorAction } from '../domain/admin/operator-action.ts'
import { addAction } from '../store/admin/operator-actions.ts'
import type { Session } from '../store/engine.ts'

/** Adds an order to the audit trail, in the transaction that carries out the order. `found`: details that only carrying it out has shown. */
export function audit(tx: Session, { action }: Audited, found: OperatorAction['detail'] = {}): void {
  if (action !== undefined) addAction(tx, { ...action, detail: { ...action.detail, ...found } })
}
