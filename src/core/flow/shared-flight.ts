import type { FlightEnd } from '../domain/polling/carrier-answer.ts'
import type { SharedFlights } from '../store/polling/shared-carrier.ts'

/** Runs at most one job for each key at a time. Callers that come while it runs get its outcome, even if it fails. */
interface SingleFlight<Value> {
  (key: string, start: () => Promise<Value>): Promise<Value>
  /** Returns the job that is running for a key; undefined: no job is running. */
  underWay(key: string): Promise<Value> | undefined
}

export function createSingleFlight<Value>(): SingleFlight<Value> {
  const flying = new Map<string, Promise<Value>>()
  const run = (key: string, start: () => Promise<Value>) => {
    const running = flying.get(key)
    if (running !== undefined) return running
    const flight = start().finally(() => flying.delete(key))
    flying.set(key, flight)
    return flight
  }
  return Object.assign(run, { underWay: (key: string) => flying.get(key) })
}

/** If the replica that runs a job is killed, another replica takes the job over after at most this long. */
const LEASE_MS = 5000
const RENEW_MS = LEASE_MS / 3
/** Waiting replicas check at this interval whether the flight has ended, at most `LOOKS_MAX` times. */
const LOOK_MS = 200
const LOOKS_MAX = 150
/** Callers that do not learn the outcome of the job are asked to try again after this time. */
const RETRY_AFTER_MS = 30_000

export interface SharedFlightPorts {
  readonly flights: SharedFlights
  readonly pause: (ms: number) => Promise<void>
}

/**
 * Runs a job once if several replicas want it at the same time. One replica runs the job under a lease. The others check several times a
 * second, for half a minute at most, whether it has ended.
 */
export type SharedFlight = <Value>(key: string, flight: Flight<Value>) => Promise<Value>

/** A job that one replica runs for all, and how its outcome reaches the other callers. */
export interface Flight<Value> {
  readonly start: () => Promise<Value>
  /** The key of another flight that must end before this one begins; null: there is none. */
  readonly after: string | null
  readonly endOf: (value: Value) => FlightEnd
  /** How long the end `not_found` also answers callers that did not wait for the job. They may have sent their requests before that end. */
  readonly notFoundForMs: number
  /** Turns the end into a value for another caller. Null: the caller cannot use the end, and starts the job itself. */
  readonly read: (end: FlightEnd) => Value | null
}

/** For a relay without other replicas. */
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
      // If the end cannot be saved, the lease runs out.
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
      // If the job has ended, the caller cannot use its end, so try to take the flight again.
      waited = turn.kind === 'held'
      if (waited) await pause(LOOK_MS)
    }
    const value = flight.read({ kind: 'unavailable', retryAfterMs: RETRY_AFTER_MS })
    return value ?? (await flight.start())
  }
}
