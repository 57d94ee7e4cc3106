import { probeSoon, wakeWaiting } from '../../domain/delivery/endpoint-health.ts'
import { hastenDelivery } from '../../store/delivery/next-deliveries.ts'
import { skipDelivery, unskipDelivery } from '../../store/delivery/settlements.ts'
import type { Transactions } from '../../store/write-store.ts'
import { audit } from '../audit.tx.ts'
import type { WriteSide } from '../write-side.ts'

/**
 * Creates the verbs with which an operator makes waiting deliveries due now, for example after a receiver was repaired, or gives up a
 * delivery (DOMAIN 7.4).
 */
export function createRetryNow(store: Transactions): Pick<WriteSide, 'retryEndpoint' | 'retryDelivery' | 'skipDelivery'> {
  return {
    retryEndpoint: ({ id, nowMs, ...order }) =>
      store.transaction(
        async (tx) => {
          const state = (await tx.listEndpoints()).find(({ endpoint }) => endpoint.id === id)
          if (state === undefined) return 'unknown'
          if (state.disabled !== null) return 'disabled'
          tx.saveHealth(id, wakeWaiting(state.health, nowMs))
          audit(tx, order)
          return 'done'
        },
        { announced: true },
      ),

    retryDelivery: ({ deliveryId, nowMs, ...order }) =>
      store.transaction(
        async (tx) => {
          const found = await hastenDelivery(tx, deliveryId)
          if (found === null) return 'unknown'
          const state = (await tx.listEndpoints()).find(({ endpoint }) => endpoint.id === found.endpointId)
          if (found.state !== 'due' || state === undefined) return found.state === 'behind' ? 'behind' : 'ended'
          if (state.disabled !== null) return 'disabled'
          unskipDelivery(tx, deliveryId)
          tx.saveHealth(found.endpointId, probeSoon(state.health, nowMs))
          audit(tx, order)
          return 'done'
        },
        { announced: true },
      ),

    skipDelivery: ({ deliveryId, ...order }) =>
      store.transaction(
        async (tx) => {
          const done = (await skipDelivery(tx, deliveryId)) ?? 'unknown'
          if (done === 'done') audit(tx, order)
          return done
        },
        { announced: true },
      ),
  }
}
