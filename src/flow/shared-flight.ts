import type { FlightEnd } from '../domain/polling/flight-end.ts'
import type { SharedFlights } from './history/ports.ts'

/** How long a flight of a replica that was killed keeps the others waiting. */
const LEASE_MS = 5000
const RENEW_MS = LEASE_MS / 3
/** How often those who wait look whether it has ended, and how often at most. */
const LOOK_MS = 200
const LOOKS_MAX = 150
/** How long to wait before the next question if the outcome of the flight is unknown. */
const RETRY_AFTER_MS = 30_000

export interface SharedFlightPorts {
  readonly flights: SharedFlights
  readonly pause: (ms: number) => Promise<void>
}

/**
 * When several replicas want the same at once, one does it, and the others look several times a second, for half a minute at most, whether it has
 * ended. If that one was killed, another takes over when its lease has lapsed.
 */
export type SharedFlight = <Value>(key: string, flight: Flight<Value>) => Promise<Value>

/** What is done once, and how its end is passed on. */
export interface Flight<Value> {
  readonly start: () => Promise<Value>
  /** The key of another flight, which must have ended first; null: there is none. */
  readonly after: string | null
  readonly endOf: (value: Value) => FlightEnd
  /** For how long `not_found` holds for those who come after the end, seconds at most: they may have begun to ask before it. */
  readonly notFoundForMs: number
  /** What it means to those who waited. Null: nothing, and the caller starts it itself. */
  readonly read: (end: FlightEnd) => Value | null
}

/** The flight of a process without other replicas. */
export const alone: SharedFlight = (_key, { start }) => start()

export function createSharedFlight({ flights, pause }: SharedFlightPorts): SharedFlight {
  async function fly<Value>(key: string, holder: string, { start, endOf }: Flight<Value>): Promise<Value> {
    let isOver = false
    const renewing = (async () => {
      for (let waitedMs = 0; !isOver; ) {
        await pause(LOOK_MS)
        waitedMs += LOOK_MS
        if (isOver || waitedMs < RENEW_MS) continue
        waitedMs = 0
        await flights.renew({ key, holder, leaseMs: LEASE_MS }).catch(() => undefined)
      }
    })()
    void renewing
    let end: FlightEnd = { kind: 'failed', retryAfterMs: null }
    try {
      const value = await start()
      end = endOf(value)
      return value
    } finally {
      isOver = true
      // Not known to have ended, it lapses.
      await flights.end({ key, holder, end }).catch(() => undefined)
    }
  }

  async function untilEnded(key: string): Promise<void> {
    for (let look = 0; look < LOOKS_MAX && (await flights.isUnderWay(key)); look++) await pause(LOOK_MS)
  }

  return async (key, flight) => {
    if (flight.after !== null) await untilEnded(flight.after)
    let waited = false
    for (let look = 0; look < LOOKS_MAX; look++) {
      const turn = await flights.take({ key, leaseMs: LEASE_MS, waited, notFoundForMs: flight.notFoundForMs })
      if (turn.kind === 'taken') return await fly(key, turn.holder, flight)
      const value = turn.kind === 'ended' ? flight.read(turn.end) : null
      if (value !== null) return value
      // An end that is not for the caller: it takes the flight itself.
      waited = turn.kind === 'held'
      if (waited) await pause(LOOK_MS)
    }
    const value = flight.read({ kind: 'unavailable', retryAfterMs: RETRY_AFTER_MS })
    return value ?? (await flight.start())
  }
}
