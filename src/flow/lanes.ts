import type { EndpointState, SettledAttempt } from './ports.ts'

/** What is under way for an endpoint. */
export interface Lane {
  /** Null: it has been removed. */
  state: EndpointState | null
  /** Attempts that are not written down yet, those that have ended included. */
  open: number
  /** Of these, those that have ended. */
  ended: number
  /** More is due for it than there was room. */
  isMoreDue: boolean
}

export interface Lanes {
  of(endpointId: string): Lane
  /** How the endpoints stand, and which of them, by id, more is due for than there was room. */
  learn(states: readonly EndpointState[], more: readonly string[]): void
  /** What has ended is being written down. */
  settling(): void
  /** It could not be, and nobody knows what more is due. */
  notSettled(attempts: readonly SettledAttempt[]): void
  /** Attempts that are not written down and not being written down, by endpoint id. */
  inFlight(): Readonly<Record<string, number>>
  /** Whether an endpoint that more is due for has as many attempts free as under way: a turn costs much the same however much it does. */
  isTurnWorthwhile(): boolean
}

export function createLanes(): Lanes {
  const lanes = new Map<string, Lane>()
  let known: readonly EndpointState[] = []

  function laneOf(endpointId: string): Lane {
    const lane = lanes.get(endpointId)
    if (lane !== undefined) return lane
    const made: Lane = { state: null, open: 0, ended: 0, isMoreDue: false }
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

  return {
    of: laneOf,
    learn(states, more) {
      if (states !== known) learnStates(states)
      for (const [id, lane] of lanes) lane.isMoreDue = more.includes(id)
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
      for (const lane of lanes.values()) if (hasHalfFree(lane)) return true
      return false
    },
  }
}

export function hasHalfFree({ isMoreDue, open, ended }: Lane): boolean {
  return isMoreDue && ended > 0 && 2 * ended >= open
}
