import { type AttemptResult, CLAIMS_PER_ATTEMPT, isGone } from '../../domain/delivery/delivery.ts'
import type { ClaimedDelivery, ClaimRef, DispatchRound, SettledAttempt } from '../../domain/delivery/dispatch-round.ts'
import type { EndpointState } from '../../domain/delivery/endpoint-state.ts'

/** What is under way for an endpoint. */
export interface EndpointQueue {
  /** Null: it has been removed. */
  state: EndpointState | null
  /** Claimed, and not attempted yet: the next begins when another ends, and not a turn later. */
  readonly waiting: ClaimedDelivery[]
  /** The ids of what is claimed and has not ended: what waits, and what is attempted. */
  readonly held: Set<number>
  /** Attempts that have ended and are not being written down yet. */
  ended: number
  /** Of those that are not known to be written down, those that were answered with 410: it is sent nothing more. */
  gone: number
  /** More is due for it than there was room. */
  isMoreDue: boolean
  /** Attempts are being begun: one that ends at once begins none by itself, or they would stand in each other. */
  isBeginning: boolean
}

export interface EndpointQueues {
  of(endpointId: string): EndpointQueue
  all(): Iterable<EndpointQueue>
  /** How the endpoints stand, and which of them, by id, more is due for than there was room. */
  learn(states: readonly EndpointState[], more: readonly string[]): void
  /** What is claimed waits for its turn. */
  claimed(deliveries: readonly ClaimedDelivery[]): void
  /** Takes out what may be attempted now; null: nothing waits or wants to be sent, or as many are attempted as may be at the same time. */
  takeNext(lane: EndpointQueue): ClaimedDelivery | null
  /** Gives up what waits for endpoints that get nothing now, or is too much for their settings by now; or all that waits. Returns how much. */
  giveBack(what: 'surplus' | 'all'): number
  /** Gives up those of some deliveries that wait. Returns how many. */
  giveBackThese(deliveries: readonly ClaimRef[]): number
  /** An attempt has ended. */
  ended(lane: EndpointQueue, deliveryId: number, result: AttemptResult): void
  /** What has ended is being written down. */
  settling(): void
  /** It is. */
  settled(attempts: readonly SettledAttempt[]): void
  /** It could not be, and nobody knows what more is due. */
  notSettled(attempts: readonly SettledAttempt[]): void
  /** The ids of what is claimed and has not ended, by endpoint id. */
  inFlight(): DispatchRound['inFlight']
  /** Whether more is due and as many attempts have ended as there may be at the same time: a turn costs the same however much it does. */
  isTurnWorthwhileFor(lane: EndpointQueue): boolean
  /** Whether it is for one of them. */
  isTurnWorthwhile(): boolean
}

/** `perEndpoint`: attempts at the same time to an endpoint that says nothing else; asked each time. */
export function createEndpointQueues(perEndpoint: () => number): EndpointQueues {
  const lanes = new Map<string, EndpointQueue>()
  let known: readonly EndpointState[] = []

  function laneOf(endpointId: string): EndpointQueue {
    const lane = lanes.get(endpointId)
    if (lane !== undefined) return lane
    const made: EndpointQueue = { state: null, waiting: [], held: new Set(), ended: 0, gone: 0, isMoreDue: false, isBeginning: false }
    lanes.set(endpointId, made)
    return made
  }

  function learnStates(states: readonly EndpointState[]): void {
    known = states
    const ids = new Set(states.map(({ endpoint }) => endpoint.id))
    for (const [id, lane] of lanes) {
      if (ids.has(id)) continue
      lane.state = null
      if (openOf(lane) === 0) lanes.delete(id)
    }
    for (const state of states) laneOf(state.endpoint.id).state = state
  }

  const isProbed = ({ state }: EndpointQueue) => state !== null && state.health.probing !== null
  const limitOf = (lane: EndpointQueue) => (isProbed(lane) ? 1 : (lane.state?.endpoint.concurrency ?? perEndpoint()))
  const claimsOf = (lane: EndpointQueue) => (isProbed(lane) ? 1 : CLAIMS_PER_ATTEMPT * limitOf(lane))
  /** Claimed and not being written down yet. */
  const openOf = ({ held, ended }: EndpointQueue) => held.size + ended
  const isTurnWorthwhileFor = (lane: EndpointQueue) =>
    lane.isMoreDue && lane.ended > 0 && lane.ended >= Math.min(openOf(lane), limitOf(lane))

  function release(lane: EndpointQueue, deliveries: readonly ClaimedDelivery[]): number {
    for (const { deliveryId } of deliveries) lane.held.delete(deliveryId)
    return deliveries.length
  }

  return {
    of: laneOf,
    all: () => lanes.values(),
    isTurnWorthwhileFor,
    claimed(deliveries) {
      for (const delivery of deliveries) {
        const lane = laneOf(delivery.endpointId)
        lane.held.add(delivery.deliveryId)
        lane.waiting.push(delivery)
      }
    },
    takeNext(lane) {
      const { held, gone, waiting } = lane
      return gone === 0 && held.size - waiting.length < limitOf(lane) ? (waiting.shift() ?? null) : null
    },
    giveBack(what) {
      let count = 0
      for (const lane of lanes.values()) {
        const isKept = what === 'surplus' && lane.state !== null && lane.state.disabled === null
        const tooMany = isKept ? Math.max(0, openOf(lane) - claimsOf(lane)) : lane.waiting.length
        count += release(lane, lane.waiting.splice(Math.max(0, lane.waiting.length - tooMany)))
      }
      return count
    },
    giveBackThese(deliveries) {
      let count = 0
      for (const { endpointId, deliveryId } of deliveries) {
        const lane = laneOf(endpointId)
        const at = lane.waiting.findIndex((delivery) => delivery.deliveryId === deliveryId)
        if (at !== -1) count += release(lane, lane.waiting.splice(at, 1))
      }
      return count
    },
    learn(states, more) {
      if (states !== known) learnStates(states)
      for (const [id, lane] of lanes) lane.isMoreDue = more.includes(id)
    },
    ended(lane, deliveryId, result) {
      lane.held.delete(deliveryId)
      lane.ended += 1
      if (isGone(result)) lane.gone += 1
    },
    settled(attempts) {
      for (const { endpointId, result } of attempts) if (isGone(result)) laneOf(endpointId).gone -= 1
    },
    settling() {
      for (const lane of lanes.values()) lane.ended = 0
    },
    notSettled(attempts) {
      for (const lane of lanes.values()) lane.isMoreDue = false
      for (const { endpointId } of attempts) laneOf(endpointId).ended += 1
    },
    inFlight: () => Object.fromEntries([...lanes].map(([id, { held }]) => [id, [...held]])),
    isTurnWorthwhile() {
      for (const lane of lanes.values()) if (isTurnWorthwhileFor(lane)) return true
      return false
    },
  }
}
