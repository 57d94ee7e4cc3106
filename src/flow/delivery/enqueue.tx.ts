import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'
import { type DeliverableEvent, planDeliveries } from '../../domain/delivery/plan-deliveries.ts'
import type { WriteTx } from '../write-store.ts'

/** Queues an event for the endpoints that want it and were not sent its entry before. Returns how many deliveries it queued. */
export async function enqueue(tx: WriteTx, states: readonly EndpointState[], event: DeliverableEvent): Promise<number> {
  const { composed, deliveries } = planDeliveries(states, event)
  if (composed !== null) await tx.saveComposedEvent(event.sequence, composed)
  for (const delivery of deliveries) await tx.queueDelivery(delivery)
  return deliveries.length
}
