import type { Audited, OperatorAction } from '../domain/admin/operator-action.ts'
import { encodeOperatorEvent, type OperatorEvent } from '../domain/delivery/operator-event.ts'
import { ERASED_WORD } from '../domain/history/erased.ts'
import { addAction, addOperatorEvent } from '../store/admin/operations.ts'
import type { Session } from '../store/engine.ts'
import { lookUpIdentifiers } from '../store/history/parcels.ts'
import { findTombstones } from '../store/history/tombstones.ts'
import type { Transactions, WriteTx } from '../store/write-store.ts'

export interface Posted {
  /** Whether operators were told of the event before it could be stored. Then it is stored, and not queued for them. */
  readonly isPosted?: boolean | undefined
}

/** Creates the verbs that record what operators are told, and what they have ordered. */
export function createAuditTrail(store: Transactions, tombstoneKey: () => Uint8Array | null) {
  return {
    /** Stores an operator event, and the order (`action`) that caused it. Queues the event if the config names an endpoint for operator events. */
    recordOperatorEvent: (event: OperatorEvent, nowMs: number, { isPosted, ...order }: Audited & Posted = {}) =>
      store.transaction(async (tx) => {
        await recordOperatorEvent(tx, event, nowMs, isPosted)
        audit(tx, order)
      }),
    /** Adds an order that was carried out outside the store to the audit trail. */
    recordAction: (action: OperatorAction) =>
      store.transaction(async (tx) => addAction(tx, await unlessErased(tx, action, tombstoneKey()))),
  }
}

/** An order about a parcel may end after the parcel was erased, perhaps by another identifier. Then it does not name the parcel. */
async function unlessErased(tx: WriteTx, action: OperatorAction, key: Uint8Array | null): Promise<OperatorAction> {
  const { target } = action
  if (target?.kind !== 'parcel' || key === null || (await lookUpIdentifiers(tx, [target.id])).length > 0) return action
  return (await findTombstones(tx, key, [target.id])).size === 0 ? action : { ...action, target: { ...target, id: ERASED_WORD } }
}

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
