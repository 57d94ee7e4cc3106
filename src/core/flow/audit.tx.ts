import type { Audited, OperatorAction } from '../domain/admin/operator-action.ts'
import { encodeOperatorEvent, type OperatorEvent } from '../domain/delivery/operator-event.ts'
import { addAction, addOperatorEvent } from '../store/admin/operations.ts'
import type { Session } from '../store/engine.ts'
import type { WriteTx } from '../store/write-store.ts'

/** Adds an order to the audit trail, in the transaction that carries out the order. `found`: details that only carrying it out has shown. */
export function audit(tx: Session, { action }: Audited, found: OperatorAction['detail'] = {}): void {
  if (action !== undefined) addAction(tx, { ...action, detail: { ...action.detail, ...found } })
}

/** Operator events belong to no parcel. All get parcel id 0, so that they are delivered in order, like the events of one parcel. */
const NO_PARCEL = 0

/**
 * Stores an operator event, and queues it for the endpoint that the setting `operator` creates, if there is one. So the event survives a
 * restart, and its delivery is retried. Call it in the transaction of the change that the event reports. `isPosted`: operators
 * were told before it could be stored, so it is not queued.
 */
export async function recordOperatorEvent(tx: WriteTx, event: OperatorEvent, nowMs: number, isPosted = false): Promise<void> {
  addOperatorEvent(tx, event, nowMs)
  if (isPosted) return
  const operator = (await tx.listEndpoints()).find(({ origin }) => origin === 'operator')
  if (operator === undefined) return
  await tx.queueComposed({ endpointId: operator.endpoint.id, parcelId: NO_PARCEL, body: encodeOperatorEvent(event, nowMs), nowMs })
}
