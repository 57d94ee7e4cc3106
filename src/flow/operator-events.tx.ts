import { encodeOperatorEvent, type OperatorEvent } from '../domain/delivery/operator-event.ts'
import type { WriteTx } from './write-store.ts'

/** Operator events belong to no parcel and have an order of their own. */
const NO_PARCEL = 0

/**
 * Stores an operator event, and queues it as a delivery to the endpoint that the setting `operator` creates, if there is one, so that it survives a restart and
 * is retried. Both happen with the change of state that it tells, or not at all.
 */
export async function recordOperatorEvent(tx: WriteTx, event: OperatorEvent, nowMs: number): Promise<void> {
  tx.addOperatorEvent(event, nowMs)
  const operator = (await tx.listEndpoints()).find(({ origin }) => origin === 'operator')
  if (operator === undefined) return
  await tx.queueComposed({ endpointId: operator.endpoint.id, parcelId: NO_PARCEL, body: encodeOperatorEvent(event, nowMs), nowMs })
}
