import { fail } from 'node:assert/strict'
import { EVENTS_PER_PARCEL, eventAt, trackingId } from './load/event.ts'
import type { Generator } from './load/generator-process.ts'
import { type Measurement, measure, paceOf, warmUp } from './measure.ts'
import type { RelayServer } from './servers/relay.ts'
import { SHARED_KEY } from './servers/relay-config.ts'
import type { Server } from './servers/server.ts'
import type { Settings } from './settings.ts'

export interface PushLoad {
  readonly connections: number
  /** Null: closed loop. */
  readonly ratePerSecond: number | null
  /** The first parcel of the load. Several loads into one store must use different parcels. */
  readonly firstParcel: number
  /** Whether events may repeat; only for servers that do not parse them. */
  readonly repeat: boolean
  /** Whether events are pushed about when they happen; absent: up to three days later. */
  readonly isFresh?: boolean
  /** Called when the warm-up is over. */
  readonly onWarm?: () => Promise<void>
}

export interface PushMeasurement extends Measurement {
  /** Number of pushes answered 200, including the warm-up. */
  readonly acknowledged: number
}

/** Pushes per second that no server here can exceed; sets how many events to prepare. */
const RATE_MAX = 30_000
const REPEATED_EVENTS = 10_000
const LOOKED_AT = 40

/** How many events a load prepares. */
function eventsFor({ warmUpMs, durationMs }: Settings, ratePerSecond: number | null): number {
  return Math.ceil((RATE_MAX * warmUpMs + (ratePerSecond ?? RATE_MAX) * durationMs) / 1000)
}

/** Prepares, warms up and measures. All events are signed before the measurement. */
export async function measurePushes(load: Generator, server: Server, settings: Settings, options: PushLoad): Promise<PushMeasurement> {
  const { connections, ratePerSecond, firstParcel, repeat, isFresh = false } = options
  const { warmUpMs, durationMs } = settings
  const { port, pid } = server
  const most = eventsFor(settings, ratePerSecond)
  await load.prepare({ kind: 'pushes', firstParcel, events: repeat ? REPEATED_EVENTS : most, sharedKey: SHARED_KEY, repeat, isFresh })
  const before = await warmUp(load, port, warmUpMs)
  await options.onWarm?.()
  const measured = await measure(load, pid, { port, connections, pace: paceOf(ratePerSecond, durationMs) })
  const acknowledged = measured.answered + before
  if (!repeat && ratePerSecond === null && acknowledged >= most)
    throw new RangeError(`${most} pushes were prepared, and all were taken before the time was over`)
  return { ...measured, acknowledged }
}

/** Throws unless acknowledged events are visible at once: checks that some of the first parcels have all theirs. */
export async function assertVisible(
  relay: RelayServer,
  { firstParcel }: PushLoad,
  acknowledged: number,
  connections: number,
): Promise<void> {
  const token = await relay.logIn()
  // The order of the last ones, one per connection, is unknown.
  const certain = acknowledged - connections
  for (let parcel = firstParcel; parcel < firstParcel + Math.min(LOOKED_AT, certain); parcel++) {
    const expected = eventsAmong(certain, parcel, firstParcel)
    const response = await relay.ask(`/v1/status/${trackingId(parcel)}/all`, token)
    const answer: unknown = await response.json()
    const statuses =
      typeof answer === 'object' && answer !== null && 'statuses' in answer && Array.isArray(answer.statuses) ? answer.statuses : []
    if (statuses.length < expected)
      fail(`${statuses.length} of ${expected} acknowledged events of a parcel are served (${response.status})`)
  }
}

function eventsAmong(count: number, parcel: number, firstParcel: number): number {
  let found = 0
  for (let at = parcel - firstParcel; at < count && found < EVENTS_PER_PARCEL; at++) {
    const event = eventAt(at, firstParcel)
    if (event.parcel === parcel && event.nth === found) found += 1
  }
  return found
}
