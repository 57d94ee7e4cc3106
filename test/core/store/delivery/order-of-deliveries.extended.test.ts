import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AttemptResult } from '../../../../src/core/domain/delivery/delivery.ts'
import { createDispatcher, type Dispatcher } from '../../../../src/core/flow/delivery/dispatching/dispatcher.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { allEndpoints } from '../../../support/relay/held-endpoints.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { LONG, runsOn } from '../../../support/runner/long-form.ts'
import { engines } from '../../../support/store/engines.ts'
import { storedRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const kept = { durationMs: 1, answerStart: new Uint8Array() }
const ANSWERS: Readonly<Record<'taken' | 'refused' | 'gone' | 'slow', AttemptResult>> = {
  taken: { kind: 'accepted', status: 200, ...kept },
  refused: { kind: 'rejected', status: 500, retryAfterMs: null, ...kept },
  gone: { kind: 'rejected', status: 410, retryAfterMs: null, ...kept },
  slow: { kind: 'rejected', status: 503, retryAfterMs: HOUR_MS, ...kept },
}

interface Attempt {
  readonly endpointId: string
  readonly sequence: number
  readonly end: (result: AttemptResult) => void
}

interface Row {
  readonly id: number
  readonly parcel: number
  readonly sequence: number
  readonly ended: 0 | 1
  readonly delivered: 0 | 1
}

const LISTED = `
  select id, parcel_id as parcel, sequence, case when state >= 2 then 1 else 0 end as ended, case when state = 2 then 1 else 0 end as delivered
  from delivery where endpoint_id = ? order by sequence`

/** Opens two endpoints that answer when the test says so, and an observer that checks their attempts by DOMAIN 7.3 alone. */
async function openWorld(engine: Engine) {
  const store = await openStore(NOON, engine)
  const settings = { concurrency: 2 }
  const endpoints = [
    await addEndpoint(store.writes, NOON, { name: 'one', ...settings }),
    await addEndpoint(store.writes, NOON, { name: 'other', ...settings }),
  ].map(({ id }) => id)
  const rowsOf = (endpointId: string) => storedRows<Row>(store.path, LISTED, Number(endpointId))
  let underWay: Attempt[] = []
  const wrong: string[] = []
  const told = new Set<string>()
  let id = 0

  const begun: Promise<void>[] = []

  /** Checks an attempt that begins. `beside`: the attempts under way at that time. */
  async function begins(endpointId: string, sequence: number, beside: readonly Attempt[]): Promise<void> {
    const rows = await rowsOf(endpointId)
    const own = rows.find((row) => row.sequence === sequence)
    const isOfParcel = (other: number) => rows.some((row) => row.sequence === other && row.parcel === own?.parcel)
    for (const other of beside) {
      if (other.endpointId === endpointId && isOfParcel(other.sequence)) wrong.push(`${sequence} beside ${other.sequence}`)
    }
    const earlier = rows.find((row) => row.parcel === own?.parcel && row.sequence < sequence && row.ended === 0)
    if (earlier !== undefined) wrong.push(`${sequence} before ${earlier.sequence}`)
    if (own === undefined || own.ended === 1) wrong.push(`${sequence} has ended`)
  }

  const startRelay = (): Dispatcher =>
    createDispatcher(
      {
        held: allEndpoints,
        write: store.writes,
        sender: {
          post({ headers: { endpoint: endpointId = '', sequence: text } }, onEnd) {
            const sequence = Number(text)
            begun.push(begins(endpointId, sequence, [...underWay]))
            underWay.push({ endpointId, sequence, end: onEnd })
          },
        },
        signerOf: ({ endpoint }) => ({
          hasNext: false,
          fingerprints: { current: '00000000', next: null },
          headers: ({ sequence }) => ({ endpoint: endpoint.id, sequence: String(sequence) }),
        }),
        routeOf: () => ({}),
        clock: { now: store.now, monotonic: store.now },
        random: () => 0.5,
        meter: { deliveryAttempted: () => {} },
        log: { debug: () => {}, info: () => {}, warn: () => {}, error: (_fields, message) => void wrong.push(message) },
        wake: () => {},
        yieldToIo: async () => {},
      },
      { relayId: 'relay', claimsMax: 100, perEndpoint: () => 2, claimsPerAttempt: 3 },
    )
  let relay = startRelay()

  /** Expects that no delivery ends before its attempt does. */
  async function seeUnderWay(): Promise<void> {
    for (const endpointId of new Set(underWay.map((one) => one.endpointId))) {
      const ended = (await rowsOf(endpointId)).filter((row) => row.ended === 1).map(({ sequence }) => sequence)
      const over = underWay.filter((one) => one.endpointId === endpointId && ended.includes(one.sequence))
      for (const { sequence } of over) wrong.push(`${sequence} has ended while under way`)
    }
  }

  const look = async () => {
    relay.look()
    store.pass(10)
    await relay.pass()
    await Promise.all(begun.splice(0))
    await new Promise((resolve) => setImmediate(resolve))
    await seeUnderWay()
  }
  const deliveryAt = async (endpointId: string, nth: number) => {
    const rows = await rowsOf(endpointId)
    return rows[nth % Math.max(1, rows.length)]?.id ?? 0
  }
  return {
    wrong,
    async push(trackingIds: readonly string[]) {
      const report = await store.push({ trackingIds, eventTime: new Date(NOON - 86_400_000 + id++ * 1000).toISOString() })
      if (report.joined === true) relay.review()
    },
    async answer(nth: number, how: keyof typeof ANSWERS) {
      // Wait until the rows at the start of each attempt were read, because an answer may change them.
      await Promise.all(begun.splice(0))
      const [attempt] = underWay.splice(nth % Math.max(1, underWay.length), 1)
      attempt?.end(ANSWERS[how])
      if (attempt !== undefined && how === 'taken') told.add(`${attempt.endpointId} ${attempt.sequence}`)
    },
    look,
    pass: store.pass,
    async replay(from: number, to: number, nth: number, count: number) {
      const [endpointId = '', target = ''] = [endpoints[from], endpoints[to]]
      const rows = await rowsOf(endpointId)
      const fromSequence = rows[nth % Math.max(1, rows.length)]?.sequence ?? 0
      const selection = { endpointId, states: ['delivered', 'dead', 'cancelled'] as const, fromSequence, fromMs: 0 }
      const rest = { deliveryId: null, sequence: count === 1 ? fromSequence : null, parcelId: null }
      await store.writes.replayDeliveries({
        selection: { ...selection, ...rest },
        to: target,
        after: null,
        untilMs: store.now(),
        limit: count,
        nowMs: store.now(),
      })
      relay.review()
    },
    async skip(of: number, nth: number) {
      await store.writes.skipDelivery({ deliveryId: await deliveryAt(endpoints[of] ?? '', nth) })
      await seeUnderWay()
      relay.review()
    },
    async retry(of: number, nth: number) {
      await store.writes.retryDelivery({ deliveryId: await deliveryAt(endpoints[of] ?? '', nth), nowMs: store.now() })
      relay.review()
    },
    async enable(nth: number, enabled: boolean) {
      await store.writes.changeEndpoint({ id: endpoints[nth] ?? '', change: { enabled }, key: null, nowMs: store.now() })
      relay.review()
    },
    /** Starts a new relay, which knows nothing of the attempts under way. */
    kill() {
      underWay = []
      relay = startRelay()
    },
    async drain() {
      for (let round = 0; round < 500; round++) {
        // An earlier answer may disable the endpoint again.
        if (round < 3) for (const nth of endpoints.keys()) await this.enable(nth, true)
        await look()
        const rows = (await Promise.all(endpoints.map(rowsOf))).flat()
        if (underWay.length === 0 && rows.every(({ ended }) => ended === 1)) return
        if (underWay.length === 0) store.pass(HOUR_MS)
        while (underWay.length > 0) await this.answer(0, 'taken')
      }
      wrong.push('a delivery never ends')
    },
    /** Lists deliveries that are stored as delivered but never arrived. */
    async untold() {
      const rows = await Promise.all(
        endpoints.map(async (endpointId) => (await rowsOf(endpointId)).map((row) => ({ ...row, name: `${endpointId} ${row.sequence}` }))),
      )
      return rows.flat().filter(({ name, delivered }) => delivered === 1 && !told.has(name))
    },
  }
}

type World = Awaited<ReturnType<typeof openWorld>>
type Step = (world: World) => unknown

const parcel = fc.integer({ min: 1, max: 6 }).map((nth) => String(1000 + nth))
const nth = fc.nat(40)
const endpoint = fc.nat(1)
const steps = fc.array(
  fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 8, arbitrary: parcel.map((one) => (world: World) => world.push([one])) },
    { weight: 1, arbitrary: fc.tuple(parcel, parcel).map((ids) => (world: World) => world.push([...new Set(ids)])) },
    { weight: 10, arbitrary: fc.constant((world: World) => world.look()) },
    { weight: 6, arbitrary: nth.map((at) => (world: World) => world.answer(at, 'taken')) },
    { weight: 4, arbitrary: nth.map((at) => (world: World) => world.answer(at, 'refused')) },
    { weight: 1, arbitrary: nth.map((at) => (world: World) => world.answer(at, 'slow')) },
    { weight: 1, arbitrary: nth.map((at) => (world: World) => world.answer(at, 'gone')) },
    {
      weight: 4,
      arbitrary: fc.tuple(endpoint, endpoint, nth, fc.integer({ min: 1, max: 4 })).map(
        ([from, to, at, count]) =>
          (world: World) =>
            world.replay(from, to, at, count),
      ),
    },
    {
      weight: 4,
      arbitrary: fc.tuple(endpoint, nth).map(
        ([of, at]) =>
          (world: World) =>
            world.skip(of, at),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(endpoint, nth).map(
        ([of, at]) =>
          (world: World) =>
            world.retry(of, at),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(endpoint, fc.boolean()).map(
        ([at, enabled]) =>
          (world: World) =>
            world.enable(at, enabled),
      ),
    },
    { weight: 2, arbitrary: fc.constantFrom(5000, 300_000, 10 * HOUR_MS).map((ms) => (world: World) => world.pass(ms)) },
    { weight: 1, arbitrary: fc.constant((world: World) => world.kill()) },
  ),
  { minLength: 60, maxLength: 160, size: 'max' },
)

describe.each(engines)('the order of deliveries on $name', (engine) => {
  test('7.3: each parcel has one attempt at a time, and no event overtakes another', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const world = await openWorld(engine)
        for (const step of all) {
          await step(world)
          expect(world.wrong).toEqual([])
        }
        await world.drain()
        expect(world.wrong).toEqual([])
        expect(await world.untold()).toEqual([])
      }),
      { numRuns: runsOn(engine, LONG ? 300 : 20, 3), seed: 20261124, endOnFailure: true },
    )
  }, 600_000)
})
