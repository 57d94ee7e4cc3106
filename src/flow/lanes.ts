import { type AttemptResult, CLAIMS_PER_ATTEMPT, isGone } from '../domain/delivery.ts'
import type { ClaimedDelivery, ClaimRef, EndpointState, SettledAttempt } from './ports.ts'

/** What is under way for an endpoint. */
export interface Lane {
  /** Null: it has been removed. */
  state: EndpointState | null
  /** Claimed, and not attempted yet: the next begins when another ends, and not a turn later. */
  readonly waiting: ClaimedDelivery[]
  /** Claimed and not written down yet, those that wait and those that have ended included. */
  open: number
  /** Of these, those that have ended. */
  ended: number
  /** Of those that are not known to be written down, those that were answered with 410: it is sent nothing more. */
  gone: number
  /** More is due for it than there was room. */
  isMoreDue: boolean
  /** Attempts are being begun: one that ends at once begins none by itself, or they would stand in each other. */
  isBeginning: boolean
}

export interface Lanes {
  of(endpointId: string): Lane
  all(): Iterable<Lane>
  /** How the endpoints stand, and which of them, by id, more is due for than there was room. */
  learn(states: readonly EndpointState[], more: readonly string[]): void
  /** What is claimed waits for its turn. */
  claimed(deliveries: readonly ClaimedDelivery[]): void
  /** Takes out what may be attempted now; null: nothing waits or wants to be sent, or as many are attempted as may be at the same time. */
  takeNext(lane: Lane): ClaimedDelivery | null
  /** Takes out what waits for endpoints that get nothing now, or is too much for their settings by now; or all that waits. */
  takeBack(what: 'surplus' | 'all'): readonly ClaimRef[]
  /** An attempt has ended. */
  ended(lane: Lane, result: AttemptResult): void
  /** What has ended is being written down. */
  settling(): void
  /** It is. */
  settled(attempts: readonly SettledAttempt[]): void
  /** It could not be, and nobody knows what more is due. */
  notSettled(attempts: readonly SettledAttempt[]): void
  /** What is claimed, and neither written down nor being written down, by endpoint id. */
  inFlight(): Readonly<Record<string, number>>
  /** Whether more is due and as many attempts have ended as there may be at the same time: a turn costs the same however much it does. */
  isTurnWorthwhileFor(lane: Lane): boolean
  /** Whether it is for one of them. */
  isTurnWorthwhile(): boolean
}

/** `perEndpoint`: attempts at the same time to an endpoint that says nothing else; asked each time. */
export function createLanes(perEndpoint: () => number): Lanes {
  const lanes = new Map<string, Lane>()
  let known: readonly EndpointState[] = []

  function laneOf(endpointId: string): Lane {
    const lane = lanes.get(endpointId)
    if (lane !== undefined) return lane
    const made: Lane = { state: null, waiting: [], open: 0, ended: 0, gone: 0, isMoreDue: false, isBeginning: false }
    lanes.set(endpointId, made)
    return made
  }

  function learnStates(states: readonly EndpointState[]): void {
    known = states
    const ids = new Set(states.map(({ endpoint }) => endpoint.id))
    for (const [id, lane] of lanes) {
      if (ids.has(id)) continue
      lane.state = null
      if (lane.open === 0) lanes.delete(id)
    }
    for (const state of states) laneOf(state.endpoint.id).state = state
  }

  const limitOf = ({ state }: Lane) => state?.endpoint.concurrency ?? perEndpoint()
  const isTurnWorthwhileFor = (lane: Lane) => lane.isMoreDue && lane.ended > 0 && lane.ended >= Math.min(lane.open, limitOf(lane))

  return {
    of: laneOf,
    all: () => lanes.values(),
    isTurnWorthwhileFor,
    claimed(deliveries) {
      for (const delivery of deliveries) {
        const lane = laneOf(delivery.endpointId)
        lane.open += 1
        lane.waiting.push(delivery)
      }
    },
    takeNext(lane) {
      const { open, ended, gone, waiting } = lane
      return gone === 0 && open - ended - waiting.length < limitOf(lane) ? (waiting.shift() ?? null) : null
    },
    takeBack(what) {
      const taken: ClaimRef[] = []
      for (const lane of lanes.values()) {
        const isKept = what === 'surplus' && lane.state !== null && lane.state.disabled === null
        const tooMany = isKept ? Math.max(0, lane.open - CLAIMS_PER_ATTEMPT * limitOf(lane)) : lane.waiting.length
        const surplus = lane.waiting.splice(Math.max(0, lane.waiting.length - tooMany))
        lane.open -= surplus.length
        taken.push(...surplus.map(({ endpointId, deliveryId }) => ({ endpointId, deliveryId })))
      }
      return taken
    },
    learn(states, more) {
      if (states !== known) learnStates(states)
      for (const [id, lane] of lanes) lane.isMoreDue = more.includes(id)
    },
    ended(lane, result) {
      lane.ended += 1
      if (isGone(result)) lane.gone += 1
    },
    settled(attempts) {
      for (const { endpointId, result } of attempts) if (isGone(result)) laneOf(endpointId).gone -= 1
    },
    settling() {
      for (const lane of lanes.values()) {
        lane.open -= lane.ended
        lane.ended = 0
      }
    },
    notSettled(attempts) {
      for (const lane of lanes.values()) lane.isMoreDue = false
      for (const { endpointId } of attempts) {
        const lane = laneOf(endpointId)
        lane.open += 1
        lane.ended += 1
      }
    },
    inFlight: () => Object.fromEntries([...lanes].map(([id, { open }]) => [id, open])),
    isTurnWorthwhile() {
      for (const lane of lanes.values()) if (isTurnWorthwhileFor(lane)) return true
      return false
    },
  }
}
