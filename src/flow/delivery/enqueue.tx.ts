import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { type NewEvent, planDeliveries } from '../../domain/delivery/plan-deliveries.ts'
import type { WriteTx } from '../write-store.ts'

/** Queues an event for those of some endpoints that want it and were not told of its entry before. */
export async function queueFor(tx: WriteTx, states: readonly EndpointState[], event: NewEvent): Promise<number> {
  const { composed, deliveries } = planDeliveries(states, event)
  if (composed !== null) await tx.saveComposedEvent(event.sequence, composed)
  for (const delivery of deliveries) await tx.queueDelivery(delivery)
  return deliveries.length
}
