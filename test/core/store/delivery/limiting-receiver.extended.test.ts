import { describe, expect, test } from 'vitest'
import { type AttemptResult, CLAIMS_PER_ATTEMPT } from '../../../../src/core/domain/delivery/delivery.ts'
import { paceAt } from '../../../../src/core/domain/delivery/endpoint-health.ts'
import type { EndpointSettings } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { createDispatcher } from '../../../../src/core/flow/delivery/dispatching/dispatcher.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { deliverOptions } from '../../../support/history/policy.ts'
import { allEndpoints } from '../../../support/relay/held-endpoints.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const LATENCY_MS = 20

type Answer = { readonly status: number; readonly retryAfterMs?: number | null }
/** Answers a post that arrives at `nowMs`. */
type Receiver = (nowMs: number, body: string) => Answer

/** Takes `perSecond` posts in each second, and refuses the others. */
function limiting(perSecond: number, refusal: Answer): Receiver {
  let second = 0
  let taken = 0
  return (nowMs) => {
    const now = Math.floor(nowMs / SECOND)
    if (now !== second) taken = 0
    second = now
    taken += 1
    return taken <= perSecond ? { status: 200 } : refusal
  }
}

const ended = ({ status, retryAfterMs = null }: Answer): AttemptResult => {
  const kept = { durationMs: LATENCY_MS, answerStart: new Uint8Array() }
  return status < 300 ? { kind: 'accepted', status, ...kept } : { kind: 'rejected', status, retryAfterMs, ...kept }
}

/** Opens a real store and the real dispatcher, in simulated time, with one endpoint. */
async function openWorld(engine: Engine, receiver: Receiver, settings: Partial<EndpointSettings> = {}) {
  const store = await openStore(NOON, engine)
  const { id } = await addEndpoint(store.writes, NOON, settings)
  let wakeMs = Number.POSITIVE_INFINITY
  let running: { readonly endsMs: number; readonly end: () => void }[] = []
  const sent: { readonly atMs: number; readonly body: string; readonly status: number }[] = []
  const conditions = new Set<string>()
  const relay = createDispatcher(
    {
      held: allEndpoints,
      write: store.writes,
      sender: {
        post({ body }, onEnd) {
          const text = Buffer.from(body).toString()
          const answer = receiver(store.now(), text)
          sent.push({ atMs: store.now(), body: text, status: answer.status })
          running.push({ endsMs: store.now() + LATENCY_MS, end: () => onEnd(ended(answer)) })
        },
      },
      signerOf: () => ({ headers: () => ({}), hasNext: false, fingerprints: { current: '00000000', next: null } }),
      routeOf: () => ({}),
      clock: { now: store.now, monotonic: store.now },
      random: () => 0.5,
      meter: { deliveryAttempted: () => {} },
      log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
      wake: (atMs) => {
        wakeMs = Math.min(wakeMs, atMs ?? store.now())
      },
      yieldToIo: async () => undefined,
    },
    { relayId: 'relay', claimsMax: 100, perEndpoint: () => deliverOptions.perEndpoint, claimsPerAttempt: CLAIMS_PER_ATTEMPT },
  )
  const look = () => {
    relay.look()
    wakeMs = store.now()
  }
  let parcels = 0
  const push = async (count: number) => {
    for (let nth = 0; nth < count; nth++) await store.push({ trackingIds: [`${10_000 + parcels++}`] })
    look()
  }
  const state = async () => {
    const found = (await store.reads.listEndpoints()).find(({ endpoint }) => endpoint.id === id)
    if (found === undefined) throw new Error('the endpoint is gone')
    return found
  }

  async function pass(): Promise<void> {
    for (const { end } of running.filter(({ endsMs }) => endsMs <= store.now())) end()
    running = running.filter(({ endsMs }) => endsMs > store.now())
    if (wakeMs > store.now()) return
    wakeMs = Number.POSITIVE_INFINITY
    await relay.pass()
  }

  /** Lets time pass, event by event. */
  async function run(forMs: number): Promise<void> {
    const untilMs = store.now() + forMs
    for (;;) {
      const atMs = Math.max(store.now(), Math.min(wakeMs, ...running.map(({ endsMs }) => endsMs)))
      if (atMs > untilMs) break
      store.pass(atMs - store.now())
      await pass()
    }
    store.pass(untilMs - store.now())
    conditions.add((await state()).health.probing === null ? 'delivering' : 'failing')
  }

  return {
    store,
    reads: store.reads,
    id,
    sent,
    conditions,
    push,
    look,
    run,
    state,
    waiting: async () => (await store.reads.countBacklogs([id])).get(id)?.waiting,
    pace: async () => paceAt((await state()).health.pace, store.now()),
    accepted: () => sent.filter(({ status }) => status === 200),
  }
}

const sqlite = engines.filter(({ name }) => name === 'sqlite')

describe.each(sqlite)('7.4: a receiver that takes five a second, on $name', (engine) => {
  test.each<readonly [string, Answer]>([
    ['429', { status: 429 }],
    ['429 with Retry-After', { status: 429, retryAfterMs: SECOND }],
    ['503 with Retry-After', { status: 503, retryAfterMs: 2 * SECOND }],
  ])('catches up after a burst though three a second come, and never fails: %s', async (_, refusal) => {
    const world = await openWorld(engine, limiting(5, refusal))
    await world.push(40)
    await world.run(10 * SECOND)
    expect(await world.waiting()).toBeGreaterThan(0)
    for (let second = 0; second < 150; second++) {
      await world.push(3)
      await world.run(SECOND)
    }
    expect(await world.waiting()).toBeLessThan(10)
    expect([...world.conditions]).toEqual(['delivering'])
    // Few are refused once the pace is learnt.
    expect(world.sent.length / world.accepted().length).toBeLessThan(1.25)
  })

  test('is told as limiting us to about five a second', async () => {
    const world = await openWorld(engine, limiting(5, { status: 429 }))
    await world.push(300)
    await world.run(MINUTE)
    const { pace } = (await world.state()).health
    expect(pace?.limitPerSecond).toBeGreaterThan(4)
    expect(pace?.limitPerSecond).toBeLessThan(7)
  })

  test('gets each event of a parcel in order, though some are refused', async () => {
    const world = await openWorld(engine, limiting(5, { status: 429 }))
    for (let nth = 0; nth < 60; nth++) {
      const eventTime = new Date(NOON - 2 * MINUTE + nth * SECOND).toISOString()
      await world.store.push({ trackingIds: [`PARCEL${nth % 3}`], eventTime })
    }
    world.look()
    await world.run(2 * MINUTE)
    const times = world.accepted().map(({ body }) => Date.parse((JSON.parse(body) as { eventTime: string }).eventTime))
    expect(times).toHaveLength(60)
    expect(world.sent.length).toBeGreaterThan(60)
    for (const parcel of [0, 1, 2]) {
      const ofParcel = times.filter((time) => (time / SECOND) % 3 === parcel)
      expect(ofParcel).toEqual(ofParcel.toSorted((one, other) => one - other))
    }
  })
})

describe.each(engines)('7.4: an endpoint that limits us, on $name', (engine) => {
  test('is paused for all parcels as it asks, and a retry ends the wait', async () => {
    const world = await openWorld(engine, () => (isOpen ? { status: 200 } : { status: 429, retryAfterMs: 10 * MINUTE }))
    let isOpen = false
    await world.push(1)
    await world.run(SECOND)
    await world.push(3)
    await world.run(2 * MINUTE)
    expect(world.sent).toHaveLength(1)
    isOpen = true
    expect(await world.store.writes.retryEndpoint({ id: world.id, nowMs: world.store.now() })).toBe('done')
    world.look()
    await world.run(15 * SECOND)
    expect(world.accepted()).toHaveLength(4)
    expect(await world.pace()).toBeGreaterThan(0)
    expect([...world.conditions]).toEqual(['delivering'])
  })

  test('is failing once it has accepted nothing for five minutes, and recovers', async () => {
    const world = await openWorld(engine, (nowMs) => ({ status: nowMs < NOON + 7 * MINUTE ? 429 : 200 }))
    await world.push(3)
    await world.run(5 * MINUTE - SECOND)
    expect([...world.conditions]).toEqual(['delivering'])
    await world.run(MINUTE)
    expect((await world.state()).health.probing).not.toBeNull()
    await world.run(10 * MINUTE)
    expect([(await world.state()).health.probing, await world.waiting()]).toEqual([null, 0])
  })

  test('gets a delivery that it refuses ten times by the schedule, if it accepts others', async () => {
    const isBad = (body: string) => body.includes('BADPARCEL')
    const world = await openWorld(engine, (_, body) => ({ status: isBad(body) ? 429 : 200 }), { scheduleMs: [30 * MINUTE, 30 * MINUTE] })
    await world.store.push({ trackingIds: ['BADPARCEL'] })
    world.look()
    for (let second = 0; second < 120; second++) {
      await world.push(1)
      await world.run(SECOND)
    }
    // Ten refusals use no step; the next one waits for half an hour, like any other failure.
    expect(world.sent.filter(({ body }) => isBad(body))).toHaveLength(11)
    expect(await world.waiting()).toBe(1)
    await world.run(65 * MINUTE)
    expect(world.sent.filter(({ body }) => isBad(body))).toHaveLength(13)
    expect((await world.reads.countBacklogs([world.id])).get(world.id)).toMatchObject({ waiting: 0, dead: 1 })
  })

  test('is learnt anew by another process that takes it over, which waits as asked', async () => {
    const world = await openWorld(engine, limiting(5, { status: 429, retryAfterMs: 30 * SECOND }))
    await world.push(40)
    await world.run(SECOND)
    expect(await world.pace()).not.toBeNull()
    await world.store.writes.close()
    const other = await openStore(world.store.now(), engine, world.store.path)
    const claim = () => other.writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: other.now() })
    expect((await claim()).claimed).toEqual([])
    other.pass(30 * SECOND)
    const { claimed, endpoints } = await claim()
    expect(endpoints[0]?.health.pace).toBeNull()
    expect(claimed.length).toBeGreaterThanOrEqual(deliverOptions.perEndpoint)
  })
})
