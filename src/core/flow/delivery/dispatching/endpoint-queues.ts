import type { ClaimedDelivery, ClaimRef, DispatchRound, SettledAttempt } from '../../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'
import { EndpointQueue, type EndpointQueueOptions } from './endpoint-queue.ts'

/** The claims of all endpoints. */
export type EndpointQueues = ReturnType<typeof createEndpointQueues>

export function createEndpointQueues(options: EndpointQueueOptions) {
  const queues = new Map<string, EndpointQueue>()
  let known: readonly EndpointState[] = []

  function of(endpointId: string): EndpointQueue {
    const found = queues.get(endpointId)
    if (found !== undefined) return found
    const queue = new EndpointQueue(endpointId, options)
    queues.set(endpointId, queue)
    return queue
  }

  function updateStates(states: readonly EndpointState[]): void {
    const ids = new Set(states.map(({ endpoint }) => endpoint.id))
    for (const [id, queue] of queues) {
      if (ids.has(id)) continue
      queue.update(null)
      if (queue.isIdle) queues.delete(id)
    }
    for (const state of states) of(state.endpoint.id).update(state)
  }

  function release(from: (queue: EndpointQueue) => number): number {
    let count = 0
    for (const queue of queues.values()) count += from(queue)
    return count
  }

  return {
    of,
    all: (): Iterable<EndpointQueue> => queues.values(),
    /** For `more`, see `DispatchRoundReport`. */
    update(states: readonly EndpointState[], more: readonly string[]): void {
      if (states !== known) updateStates(states)
      known = states
      for (const [id, queue] of queues) queue.setMoreDue(more.includes(id))
    },
    claimed(deliveries: readonly ClaimedDelivery[]): void {
      for (const delivery of deliveries) of(delivery.endpointId).claimed(delivery)
    },
    releaseAll(): void {
      release((queue) => queue.releaseAll())
    },
    /** Releases the waiting claims above an endpoint's limit. If nothing may be sent to it now, releases all of them. Returns the number released. */
    releaseSurplus: () => release((queue) => queue.releaseSurplus()),
    /** Notes which claims must not be attempted any more, and releases those that still wait. Returns the number released. */
    releaseOvertaken(overtaken: readonly ClaimRef[]): number {
      const byEndpoint = Map.groupBy(overtaken, ({ endpointId }) => endpointId)
      return release((queue) => queue.releaseOvertaken(byEndpoint.get(queue.endpointId)?.map(({ deliveryId }) => deliveryId) ?? []))
    },
    isIdle: (endpointId: string) => queues.get(endpointId)?.isIdle !== false,
    /** Notes that the results of all ended attempts are being stored. */
    settling(): void {
      for (const queue of queues.values()) queue.settling()
    },
    settled(attempts: readonly SettledAttempt[]): void {
      for (const { endpointId, result } of attempts) of(endpointId).settled(result)
    },
    /** Notes that these results could not be stored. The round has failed, so it is unknown whether more deliveries are due. */
    notSettled(attempts: readonly SettledAttempt[]): void {
      for (const queue of queues.values()) queue.setMoreDue(false)
      for (const { endpointId } of attempts) of(endpointId).notSettled()
    },
    inFlight: (): DispatchRound['inFlight'] => Object.fromEntries([...queues].map(([id, queue]) => [id, queue.inFlight])),
    isRoundWorthwhile(): boolean {
      for (const queue of queues.values()) if (queue.isRoundWorthwhile) return true
      return false
    },
  }
}
