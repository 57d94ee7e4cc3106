import { describe, expect, test } from 'vitest'
import type { DuePoll } from '../../../../src/core/domain/polling/poll.ts'
import {
  CONCURRENCY,
  type Ended,
  MINUTE_MS,
  openPollingWorld,
  parcelOf,
  trackingNumber,
  WAKE_MS,
  type World,
} from '../../../support/network/polling-world.ts'
import { OPERATOR } from '../../../support/relay/operator.ts'
import { DAY_MS, HOUR_MS } from '../../../support/runner/constants.ts'
import { casesOf, LONG, runsOn } from '../../../support/runner/long-form.ts'
import { engines } from '../../../support/store/engines.ts'

const SEEDS = LONG ? 60 : 3
const PARCELS = 10
/** The shortest interval is 15 minutes, and likely scans may shorten it to a quarter. */
const SOONEST_MS = (15 * MINUTE_MS) / 4
/** A poll that could not be made is retried after a minute. */
const RETRY_MS = MINUTE_MS
/** How long a due parcel waits at most while the carrier is healthy: until the next wake, and for a few other polls. */
const DUE_FOR_MAX_MS = WAKE_MS + 2 * MINUTE_MS
/** How far ahead the next poll of a parcel may be planned. The longest interval is a day, and intervals vary by a tenth. */
const UNASKED_MAX_MS = 1.1 * DAY_MS + DUE_FOR_MAX_MS

/** Checks polls by DOMAIN 6 and CONTRACT `poll` alone, without knowing how the relay implements them. */
function createOracle() {
  const wrong: string[] = []
  const underWay: { readonly due: DuePoll; readonly byOrder: boolean; readonly askedAtMs: number }[] = []
  /** The earliest time of the next poll, by identifier, as `scheduleMs` counts. */
  const notBefore = new Map<string, { readonly atMs: number; readonly why: Ended }>()
  /** Until when the carrier asked to wait (`Retry-After`), by identifier, as `scheduleMs` counts. A push or a watch does not end this wait. */
  const waitUntil = new Map<string, number>()
  const lastPolledMs = new Map<number, number>()
  let polls = 0
  let world: World | null = null
  let forwardMs = 0
  const elapsedMs = () => world?.clock.monotonic() ?? 0
  /** The time by which polls are planned. It jumps forward with the clock, but never back. */
  const scheduleMs = () => elapsedMs() + forwardMs
  const say = (what: string) => void wrong.push(`at ${(elapsedMs() / MINUTE_MS).toFixed(1)} min: ${what}`)
  const remove = (due: DuePoll) => {
    const at = underWay.findIndex((one) => one.due === due)
    return at === -1 ? undefined : underWay.splice(at, 1)[0]
  }
  const doing = (parcel: number) => {
    for (const identifier of notBefore.keys()) if (parcelOf(identifier) === parcel) notBefore.delete(identifier)
  }

  return {
    wrong,
    polls: () => polls,
    lastPolledMs: (parcel: number) => lastPolledMs.get(parcel) ?? 0,
    watch: (watched: World) => {
      world = watched
    },
    /** Notes that a push, an app or an operator lets the parcel be polled at once. */
    doing,
    forward: (ms: number) => {
      forwardMs += ms
    },
    killed: () => {
      underWay.length = 0
      notBefore.clear()
    },
    ordered: (due: DuePoll) => void underWay.push({ due, byOrder: true, askedAtMs: scheduleMs() }),
    begins(due: DuePoll) {
      polls += 1
      const [identifier = 'nobody'] = due.identifiers
      if (world?.state.isQuiet === true) say(`${identifier} is asked about in quiet hours`)
      const scheduled = underWay.filter(({ byOrder }) => !byOrder).length
      if (scheduled >= (world?.state.callsAllowed ?? 0))
        say(`${identifier} is asked about although only ${world?.state.callsAllowed} calls are allowed`)
      const twice = underWay.some(
        (one) => one.due.parcelId === due.parcelId || one.due.identifiers.some((id) => due.identifiers.includes(id)),
      )
      if (twice) say(`${identifier} is asked about twice at the same time`)
      for (const id of due.identifiers) {
        const bound = notBefore.get(id)
        if (bound !== undefined && scheduleMs() < bound.atMs) say(`${id} is asked about too soon after "${bound.why}"`)
        if (scheduleMs() < (waitUntil.get(id) ?? 0)) say(`${id} is asked about before its Retry-After has passed`)
      }
      lastPolledMs.set(parcelOf(identifier), elapsedMs())
      underWay.push({ due, byOrder: false, askedAtMs: scheduleMs() })
    },
    ended(due: DuePoll, how: Ended, retryAfterMs: number) {
      const poll = remove(due)
      for (const id of due.identifiers) waitUntil.delete(id)
      if (how === 'not kept' || poll === undefined || poll.byOrder) {
        for (const identifier of due.identifiers) doing(parcelOf(identifier))
        return
      }
      const waitMs = how === 'unavailable' || how === 'unknown' || how === 'unusable' ? RETRY_MS : 0
      for (const id of due.identifiers) {
        // An interval counts from the request to the carrier, not from its answer, which may come much later.
        if (how === 'found') notBefore.set(id, { atMs: poll.askedAtMs + SOONEST_MS, why: how })
        else notBefore.set(id, { atMs: scheduleMs() + waitMs, why: how })
        if (retryAfterMs > 0) waitUntil.set(id, scheduleMs() + retryAfterMs)
      }
    },
    say,
  }
}

type Oracle = ReturnType<typeof createOracle>

/** Does something random to the relay, its carrier or its clock. */
async function befall(world: World, oracle: Oracle, offset: { ms: number }): Promise<void> {
  const { random, pick, state } = world
  const parcel = pick(0, PARCELS - 1)
  const what = random()
  if (what < 0.35) {
    oracle.doing(parcel)
    await world.pushLatest(parcel)
  } else if (what < 0.5) world.happen(parcel)
  else if (what < 0.65) {
    oracle.doing(parcel)
    void world
      .relay()
      .manage.refresh(trackingNumber(parcel), OPERATOR)
      .catch(() => undefined)
  } else if (what < 0.75) state.isQuiet = !state.isQuiet
  else if (what < 0.85) state.callsAllowed = [0, 1, CONCURRENCY, CONCURRENCY][pick(0, 3)] ?? CONCURRENCY
  else if (what < 0.92) {
    oracle.killed()
    await world.kill()
  } else setClock(world, oracle, offset, random() < 0.5 ? 0 : pick(-72, 72) * HOUR_MS)
}

function setClock(world: World, oracle: Oracle, offset: { ms: number }, ms: number): void {
  if (ms > offset.ms) oracle.forward(ms - offset.ms)
  offset.ms = ms
  world.setOffset(ms)
}

/** Reports each parcel that waits although it is due, that has no next poll, or whose next poll is too late. */
async function lookForForgotten(world: World, oracle: Oracle): Promise<void> {
  const nowMs = world.clock.now()
  for (let parcel = 0; parcel < PARCELS; parcel++) {
    const found = await world.relay().reads.inspectParcel(trackingNumber(parcel))
    const { nextPollAtMs = null, stopped = null } = found?.state ?? {}
    if (nextPollAtMs === null && stopped === null) oracle.say(`${trackingNumber(parcel)} has no next check`)
    if (nextPollAtMs === null) continue
    if (nextPollAtMs < nowMs - DUE_FOR_MAX_MS)
      oracle.say(`${trackingNumber(parcel)} has been due for ${(nowMs - nextPollAtMs) / MINUTE_MS} min`)
    if (nextPollAtMs > nowMs + UNASKED_MAX_MS) oracle.say(`${trackingNumber(parcel)} is put off for ${(nextPollAtMs - nowMs) / HOUR_MS} h`)
  }
}

describe.each(engines)('the poller on $name', (engine) => {
  test('6.1, 6.2, P12, P13: each parcel is polled again, not too soon, and not twice at a time', async () => {
    for (let seed = 1; seed <= runsOn(engine, SEEDS, 1); seed++) {
      const oracle = createOracle()
      const world = await openPollingWorld(engine, seed * 7919, PARCELS, oracle)
      oracle.watch(world)
      const offset = { ms: 0 }
      for (let step = 0; step < casesOf(120, 60); step++) {
        await world.pass(world.pick(1000, 6 * MINUTE_MS))
        await befall(world, oracle, offset)
      }
      // Everything works again, and slow calls get time to end.
      setClock(world, oracle, offset, 0)
      Object.assign(world.state, { isQuiet: false, callsAllowed: CONCURRENCY, isWell: true })
      await world.pass(70 * MINUTE_MS)
      const wellMs = world.clock.monotonic()
      for (let parcel = 0; parcel < PARCELS; parcel++) {
        oracle.doing(parcel)
        await world.relay().write.watch({ identifier: trackingNumber(parcel), nowMs: world.clock.now() })
      }
      for (let look = 0; look < 28; look++) {
        await world.pass(HOUR_MS)
        await lookForForgotten(world, oracle)
      }
      for (let parcel = 0; parcel < PARCELS; parcel++) {
        // A parcel that the carrier did not know is also polled within a day after it was watched.
        if (oracle.lastPolledMs(parcel) < wellMs) oracle.say(`${trackingNumber(parcel)} was never asked about again`)
      }
      await world.relay().close()
      expect({ seed, wrong: oracle.wrong.slice(0, 5) }).toEqual({ seed, wrong: [] })
      expect(oracle.polls()).toBeGreaterThan(PARCELS * 3)
    }
  })
})
