import { type AttemptResult, isGone } from '../../../domain/delivery/delivery.ts'
import type { ClaimedDelivery, ClaimRef, DispatchRound, SettledAttempt } from '../../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../../domain/delivery/endpoint-state.ts'

/** The claims of an endpoint. */
export interface EndpointQueue {
  /** Null: it has been removed. */
  state: EndpointState | null
  /** Claims that are not attempted yet: the next starts when an attempt ends, not a round later. */
  readonly waiting: ClaimedDelivery[]
  /** The ids of all claims that have not ended, waiting or attempted. */
  readonly held: Set<number>
  /** The ids of those under way that may not be attempted again: another goes first, or they were skipped. As of the last round. */
  readonly overtaken: Set<number>
  /** The number of ended attempts that are not being written down yet. */
  ended: number
  /** The number of attempts answered 410 that may not be written down yet: meanwhile the endpoint is sent nothing. */
  gone: number
  /** Whether more is due than there was room for. */
  isMoreDue: boolean
  /** Attempts are being started. One that ends at once starts none itself, or they would recurse. */
  isBeginning: boolean
}

/** The claims of all endpoints. */
export interface EndpointQueues {
  of(endpointId: string): EndpointQueue
  all(): Iterable<EndpointQueue>
  /** Takes the state of the endpoints, and the ids of those for which more is due than there was room. */
  update(states: readonly EndpointState[], more: readonly string[]): void
  /** Deliveries were claimed and wait to be attempted. */
  claimed(deliveries: readonly ClaimedDelivery[]): void
  /** Takes the next delivery that may be attempted now; null: none waits, or the endpoint has no room. */
  takeNext(queue: EndpointQueue): ClaimedDelivery | null
  /** Releases waiting claims: those beyond an endpoint's limit or of one that gets nothing now, or all. Returns how many. */
  release(what: 'surplus' | 'all'): number
  /** Takes the claims that must not start any more, and releases those that still wait. Returns how many. */
  releaseOvertaken(overtaken: readonly ClaimRef[]): number
  /** The state of an endpoint that may be sent something; null: it may not, or is not known to. */
  openStateOf(queue: EndpointQueue): EndpointState | null
  /**
   * Nothing was sent of an attempt: it waits again, before the others, or is released if its endpoint is sent nothing now, or it was overtaken. Returns
   * whether it waits.
   */
  putBack(queue: EndpointQueue, delivery: ClaimedDelivery): boolean
  /** A claim is over without a result. */
  dropped(queue: EndpointQueue, deliveryId: number): void
  /** Whether nothing of an endpoint waits, is attempted or has ended without being written down. */
  isIdle(endpointId: string): boolean
  /** An attempt has ended. */
  ended(queue: EndpointQueue, deliveryId: number, result: AttemptResult): void
  /** Everything that has ended is being written down. */
  settling(): void
  /** These were written down. */
  settled(attempts: readonly SettledAttempt[]): void
  /** These could not be written down, and what else is due is unknown. */
  notSettled(attempts: readonly SettledAttempt[]): void
  /** The ids of all claims that have not ended, by endpoint id. */
  inFlight(): DispatchRound['inFlight']
  /** Whether more is due and as many attempts have ended as may run at once, which makes a round worth its fixed cost. */
  isRoundWorthwhileFor(queue: EndpointQueue): boolean
  /** Whether a round is worthwhile for any endpoint. */
  isRoundWorthwhile(): boolean
}

export interface EndpointQueuesPorts {
  /** Concurrent attempts to an endpoint that sets no limit of its own; called each time. */
  readonly perEndpoint: () => number
  /** See `DeliveryRules`. */
  readonly claimsPerAttempt: number
  /** Whether this replica delivers to an endpoint now. */
  readonly delivers: (endpointId: string) => boolean
}

export function createEndpointQueues({ perEndpoint, claimsPerAttempt, delivers }: EndpointQueuesPorts): EndpointQueues {
  const queues = new Map<string, EndpointQueue>()
  let known: readonly EndpointState[] = []
  const limitOf = ({ state }: EndpointQueue) => (isProbed(state) ? 1 : (state?.endpoint.concurrency ?? perEndpoint()))
  const isRoundWorthwhileFor = (queue: EndpointQueue) =>
    queue.isMoreDue && queue.ended > 0 && queue.ended >= Math.min(openOf(queue), limitOf(queue))
  return {
    of: (endpointId) => queueOf(queues, endpointId),
    all: () => queues.values(),
    isRoundWorthwhileFor,
    isRoundWorthwhile() {
      for (const queue of queues.values()) if (isRoundWorthwhileFor(queue)) return true
      return false
    },
    claimed(deliveries) {
      for (const delivery of deliveries) {
        const queue = queueOf(queues, delivery.endpointId)
        queue.held.add(delivery.deliveryId)
        queue.waiting.push(delivery)
      }
    },
    takeNext(queue) {
      const { held, gone, waiting } = queue
      return gone === 0 && held.size - waiting.length < limitOf(queue) ? (waiting.shift() ?? null) : null
    },
    release(what) {
      let count = 0
      for (const [id, queue] of queues) {
        count += releaseEnd(queue, what === 'all' || !delivers(id) ? 0 : claimsOf(queue, claimsPerAttempt * limitOf(queue)))
      }
      return count
    },
    releaseOvertaken(overtaken) {
      for (const queue of queues.values()) queue.overtaken.clear()
      return overtaken.reduce((count, claim) => count + releaseOvertaken(queueOf(queues, claim.endpointId), claim), 0)
    },
    update(states, more) {
      if (states !== known) updateStates(queues, states)
      known = states
      for (const [id, queue] of queues) queue.isMoreDue = more.includes(id)
    },
    openStateOf: ({ state, gone }) => (gone === 0 && state?.disabled === null ? state : null),
    putBack(queue, delivery) {
      const isKept = claimsOf(queue, 1) > 0 && !queue.overtaken.has(delivery.deliveryId)
      if (isKept) queue.waiting.unshift(delivery)
      else queue.held.delete(delivery.deliveryId)
      return isKept
    },
    dropped({ held }, deliveryId) {
      held.delete(deliveryId)
    },
    isIdle(endpointId) {
      const queue = queues.get(endpointId)
      return queue === undefined || openOf(queue) === 0
    },
    ended(queue, deliveryId, result) {
      queue.held.delete(deliveryId)
      queue.ended += 1
      if (isGone(result)) queue.gone += 1
    },
    settling() {
      for (const queue of queues.values()) queue.ended = 0
    },
    settled(attempts) {
      for (const { endpointId, result } of attempts) if (isGone(result)) queueOf(queues, endpointId).gone -= 1
    },
    notSettled(attempts) {
      for (const queue of queues.values()) queue.isMoreDue = false
      for (const { endpointId } of attempts) queueOf(queues, endpointId).ended += 1
    },
    inFlight: () => Object.fromEntries([...queues].map(([id, { held }]) => [id, [...held]])),
  }
}

function queueOf(queues: Map<string, EndpointQueue>, endpointId: string): EndpointQueue {
  const queue = queues.get(endpointId)
  if (queue !== undefined) return queue
  const made: EndpointQueue = {
    state: null,
    waiting: [],
    held: new Set(),
    overtaken: new Set(),
    ended: 0,
    gone: 0,
    isMoreDue: false,
    isBeginning: false,
  }
  queues.set(endpointId, made)
  return made
}

function updateStates(queues: Map<string, EndpointQueue>, states: readonly EndpointState[]): void {
  const ids = new Set(states.map(({ endpoint }) => endpoint.id))
  for (const [id, queue] of queues) {
    if (ids.has(id)) continue
    queue.state = null
    if (openOf(queue) === 0) queues.delete(id)
  }
  for (const state of states) queueOf(queues, state.endpoint.id).state = state
}

function isProbed(state: EndpointState | null): boolean {
  return state !== null && state.health.probing !== null
}

/** The maximum of claims for an endpoint; 0: it gets nothing now. `flowing`: the maximum for one that does not fail. */
function claimsOf({ state }: EndpointQueue, flowing: number): number {
  if (state === null || state.disabled !== null) return 0
  return isProbed(state) ? 1 : flowing
}

/** The number of claims that are not being written down yet. */
function openOf({ held, ended }: EndpointQueue): number {
  return held.size + ended
}

/** Releases the last waiting claims until at most `claimsMax` are open; 0: all that wait. */
function releaseEnd(queue: EndpointQueue, claimsMax: number): number {
  const { waiting } = queue
  const tooMany = claimsMax === 0 ? waiting.length : Math.max(0, openOf(queue) - claimsMax)
  return forget(queue, waiting.splice(Math.max(0, waiting.length - tooMany)))
}

function releaseOvertaken(queue: EndpointQueue, { deliveryId }: ClaimRef): number {
  const at = queue.waiting.findIndex((delivery) => delivery.deliveryId === deliveryId)
  if (at !== -1) return forget(queue, queue.waiting.splice(at, 1))
  queue.overtaken.add(deliveryId)
  return 0
}

function forget({ held }: EndpointQueue, deliveries: readonly ClaimedDelivery[]): number {
  for (const { deliveryId } of deliveries) held.delete(deliveryId)
  return deliveries.length
}
