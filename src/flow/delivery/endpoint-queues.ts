import { type AttemptResult, CLAIMS_PER_ATTEMPT, isGone } from '../../domain/delivery/delivery.ts'
import type { ClaimedDelivery, ClaimRef, DispatchRound, SettledAttempt } from '../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'

/** What is under way for an endpoint. */
export interface EndpointQueue {
  /** Null: it has been removed. */
  state: EndpointState | null
  /** Claimed and not attempted yet: the next begins when another ends, not a round later. */
  readonly waiting: ClaimedDelivery[]
  /** The ids of what is claimed and has not ended: what waits, and what is attempted. */
  readonly held: Set<number>
  /** Attempts that have ended and are not being written down yet. */
  ended: number
  /** Attempts answered with 410 that are not known to be written down: the endpoint is sent nothing more. */
  gone: number
  /** More is due for it than there was room. */
  isMoreDue: boolean
  /** Attempts are being begun: one that ends at once begins none itself, or they would recurse. */
  isBeginning: boolean
}

export interface EndpointQueues {
  of(endpointId: string): EndpointQueue
  all(): Iterable<EndpointQueue>
  /** How the endpoints stand, and the ids of those that more is due for than there was room. */
  learn(states: readonly EndpointState[], more: readonly string[]): void
  /** Deliveries were claimed; they wait for their turn. */
  claimed(deliveries: readonly ClaimedDelivery[]): void
  /** Takes out what may be attempted now; null: nothing waits, or the endpoint has no room. */
  takeNext(queue: EndpointQueue): ClaimedDelivery | null
  /** Releases what waits for endpoints that get nothing now or exceeds their limit; or everything that waits. Returns how many. */
  release(what: 'surplus' | 'all'): number
  /** Releases those of some deliveries that wait. Returns how many. */
  releaseThese(deliveries: readonly ClaimRef[]): number
  /** An attempt has ended. */
  ended(queue: EndpointQueue, deliveryId: number, result: AttemptResult): void
  /** Everything that has ended is being written down. */
  settling(): void
  /** These were written down. */
  settled(attempts: readonly SettledAttempt[]): void
  /** These could not be written down, and what more is due is unknown. */
  notSettled(attempts: readonly SettledAttempt[]): void
  /** The ids of what is claimed and has not ended, by endpoint id. */
  inFlight(): DispatchRound['inFlight']
  /** Whether more is due and as many attempts have ended as may run at once: a round costs the same however much it does. */
  isRoundWorthwhileFor(queue: EndpointQueue): boolean
  /** Whether it is for any endpoint. */
  isRoundWorthwhile(): boolean
}

/** `perEndpoint`: concurrent attempts to an endpoint that sets no limit of its own; asked each time. */
export function createEndpointQueues(perEndpoint: () => number): EndpointQueues {
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
      for (const queue of queues.values()) count += releaseEnd(queue, what === 'all' ? 0 : claimsOf(queue, limitOf(queue)))
      return count
    },
    releaseThese: (deliveries) => deliveries.reduce((count, claim) => count + releaseOne(queueOf(queues, claim.endpointId), claim), 0),
    learn(states, more) {
      if (states !== known) learnStates(queues, states)
      known = states
      for (const [id, queue] of queues) queue.isMoreDue = more.includes(id)
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
  const made: EndpointQueue = { state: null, waiting: [], held: new Set(), ended: 0, gone: 0, isMoreDue: false, isBeginning: false }
  queues.set(endpointId, made)
  return made
}

function learnStates(queues: Map<string, EndpointQueue>, states: readonly EndpointState[]): void {
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

/** How many may be claimed for it; 0: it gets nothing now. */
function claimsOf({ state }: EndpointQueue, limit: number): number {
  if (state === null || state.disabled !== null) return 0
  return isProbed(state) ? 1 : CLAIMS_PER_ATTEMPT * limit
}

/** Claimed and not being written down yet. */
function openOf({ held, ended }: EndpointQueue): number {
  return held.size + ended
}

/** Releases the last of what waits until no more than `claimsMax` are open; 0: all that waits. */
function releaseEnd(queue: EndpointQueue, claimsMax: number): number {
  const { waiting } = queue
  const tooMany = claimsMax === 0 ? waiting.length : Math.max(0, openOf(queue) - claimsMax)
  return forget(queue, waiting.splice(Math.max(0, waiting.length - tooMany)))
}

function releaseOne(queue: EndpointQueue, { deliveryId }: ClaimRef): number {
  const at = queue.waiting.findIndex((delivery) => delivery.deliveryId === deliveryId)
  return at === -1 ? 0 : forget(queue, queue.waiting.splice(at, 1))
}

function forget({ held }: EndpointQueue, deliveries: readonly ClaimedDelivery[]): number {
  for (const { deliveryId } of deliveries) held.delete(deliveryId)
  return deliveries.length
}
