import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type EndpointSettings, noFilters } from '../../../src/domain/delivery/endpoint.ts'
import type { RecordRules } from '../../../src/domain/history/record-rules.ts'
import type { WriteSide } from '../../../src/flow/write-side.ts'
import type { Engine } from '../../../src/store/contract.ts'
import { openWriteSide } from '../../../src/wiring/write-side.ts'
import { addEndpoint, endpointOf } from '../../support/delivery/stored-endpoint.ts'
import { createTellingModel, type Fact, type Owed } from '../../support/delivery/telling-model.ts'
import { aPoll, pushBody } from '../../support/history/builders.ts'
import { strictLog } from '../../support/history/observed.ts'
import { cadence, deliverOptions, recordOptions } from '../../support/history/policy.ts'
import { HOUR_MS, NOON } from '../../support/runner/constants.ts'
import { runsOn } from '../../support/runner/long-form.ts'
import { upgradeToBegan } from '../../support/store/earlier-schema.ts'
import { engines, withPlace } from '../../support/store/engines.ts'
import { pruneStoredFeed, storedNumber, storedRows } from '../../support/store/stored-rows.ts'
import { incomingPush } from '../../support/store/write-side.ts'

const RECENT_MS = HOUR_MS
const rules = (staleAfterMs: number): RecordRules => ({ ...recordOptions, cadence: { ...cadence, staleAfterMs } })
/** With this age, no backfill is recent enough to be sent by its time. So recording decides as versions did that knew no beginning of endpoints. */
const NEVER_MS = -1e15

/** Things that happened, each in a second of its own. Every parcel may report each of them. */
const FACTS: readonly Fact[] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((nth) => ({
  nth,
  atMs: NOON + (nth - 6) * 900_000,
  status: nth % 3 === 0 ? 'DeliverySucceeded' : 'TerminalArrived',
}))
const IDS = ['1001', '2002', '3003', '4004']

/** What worlds are made of. `joins`: of ten observations, how many join parcels. `adds`: beside 15 other steps, how many add an endpoint. */
interface Mixture {
  readonly facts: readonly Fact[]
  readonly joins: number
  readonly adds: number
}

const stepOf = ({ facts, joins, adds }: Mixture) => {
  const fact = fc.constantFrom(...facts)
  /** The parcels of an observation. Those that it names beside the first are joined with it. */
  const about = fc.oneof(
    { arbitrary: fc.nat(IDS.length - 1).map((one) => [one]), weight: 10 - joins },
    { arbitrary: fc.uniqueArray(fc.nat(IDS.length - 1), { minLength: 2, maxLength: 3 }), weight: joins },
  )
  return fc.oneof(
    {
      arbitrary: fc.record({ kind: fc.constant('push'), fact, about, text: fc.constantFrom('Arrived', 'Framme') }),
      weight: 6,
    },
    {
      arbitrary: fc.record({
        kind: fc.constant('poll'),
        about,
        listed: fc.uniqueArray(fact, { maxLength: 6 }),
        watch: fc.boolean(),
        language: fc.constantFrom('en', 'sv'),
      }),
      weight: 5,
    },
    { arbitrary: fc.record({ kind: fc.constant('add'), backfill: fc.boolean(), from: fc.option(fc.nat(9)) }), weight: adds },
    { arbitrary: fc.record({ kind: fc.constant('turn'), endpoint: fc.nat(9) }), weight: 2 },
    { arbitrary: fc.record({ kind: fc.constant('queue') }), weight: 1 },
    { arbitrary: fc.record({ kind: fc.constant('prune') }), weight: 1 },
  )
}

/** The steps, each with the time that passes before it. `upgrade`: the number of steps after which the store is upgraded. */
const worldsOf = (mixture: Mixture) =>
  fc.record({
    steps: fc.array(fc.tuple(stepOf(mixture), fc.integer({ min: 1, max: 30 })), { minLength: 4, maxLength: 30 }),
    upgrade: fc.option(fc.integer({ min: 1, max: 12 })),
  })
type World = ReturnType<typeof worldsOf> extends fc.Arbitrary<infer T> ? T : never

const MIXTURES = [
  { name: 'that many parcels report', facts: FACTS, joins: 1, adds: 2 },
  // Nearly every join unites entries, and the readers begin between the events about them.
  { name: 'that joined parcels report in the same words', facts: FACTS.slice(2, 4), joins: 4, adds: 4 },
]

interface Added extends Owed {
  readonly id: string
  /** Whether it reads older events of the feed. */
  readonly reads: boolean
  /** How many parcels there were when it was added. Each may have reported an entry. */
  readonly apart: number
}

async function run(engine: Engine, path: string, { steps, upgrade }: World): Promise<void> {
  let nowMs = NOON
  const clock = { now: () => nowMs, monotonic: () => performance.now() }
  const open = (staleAfterMs: number) =>
    openWriteSide({ sqlitePath: path, engine, record: rules(staleAfterMs), deliver: deliverOptions }, clock, strictLog)
  let writes = await open(upgrade === null ? RECENT_MS : NEVER_MS)
  const model = createTellingModel(upgrade === null ? RECENT_MS : NEVER_MS, IDS.length)
  const endpoints: Added[] = []

  async function add(settings: Partial<EndpointSettings>, fromPlace: number | null): Promise<void> {
    const name = `endpoint ${endpoints.length}`
    const from = fromPlace === null ? null : await sequenceOf(path, fromPlace - model.kept())
    const { id } = await addEndpoint(writes, nowMs, { name, ...settings, ...(from === null ? {} : { from }) })
    endpoints.push({ id, reads: from !== null, apart: model.apart(), ...model.begin(settings, fromPlace, nowMs) })
  }
  await add({}, null)
  await add({ backfill: true }, null)
  await add({ filters: { ...noFilters, status: ['DeliverySucceeded'] } }, null)

  for (const [nth, [one, minutes]] of steps.entries()) {
    nowMs += minutes * 60_000
    if (nth === upgrade) {
      for (const endpoint of endpoints) endpoint.taken.push(...(await taken(writes, endpoint, nowMs)))
      await writes.close()
      await upgradeToBegan(path)
      writes = await open(RECENT_MS)
      model.upgrade(RECENT_MS)
      for (const endpoint of endpoints) endpoint.beganAtMs = await beganAt(path, endpoint.id)
    }
    if (one.kind === 'push') {
      model.push(one.fact, one.about, nowMs)
      await writes.record([incomingPush(bodyOf(one.fact, one.text, idsOf(one.about)), nowMs)])
    } else if (one.kind === 'poll') {
      model.poll(one, one.about, nowMs)
      const observation = aPoll({
        asked: idsOf(one.about)[0] ?? '',
        language: one.language,
        askedAtMs: nowMs,
        trackingIds: idsOf(one.about),
        statuses: one.listed.map(({ atMs, status }) => ({ eventTimestamp: new Date(atMs).toISOString(), status })),
      })
      await writes.record([{ kind: 'poll', observation, watch: one.watch }])
    } else if (one.kind === 'add') {
      if (endpoints.length < 7) await add({ backfill: one.backfill }, model.placeFrom(one.from))
    } else if (one.kind === 'turn') {
      await replayFeed(writes, nowMs)
      const endpoint = endpoints[one.endpoint % endpoints.length]
      if (endpoint === undefined) continue
      await writes.changeEndpoint({ id: endpoint.id, change: { backfill: model.turn(endpoint) }, key: null, nowMs })
    } else if (one.kind === 'queue') {
      await writes.replayFeed({ limit: 2, nowMs })
    } else {
      await replayFeed(writes, nowMs)
      if (await pruneFeed(path)) model.prune()
    }
  }
  await replayFeed(writes, nowMs)
  for (const endpoint of endpoints) {
    const all = [...endpoint.taken, ...(await taken(writes, endpoint, nowMs))].sort((a, b) => a - b)
    const owed = model.owedTo(endpoint)
    if (!endpoint.reads) expect(all).toEqual(owed)
    else {
      // Several events about one entry are sent once if they are read after the join.
      expect([...new Set(all)]).toEqual([...new Set(owed)])
      for (const { nth } of FACTS) expect(timesOf(all, nth)).toBeLessThanOrEqual(Math.min(timesOf(owed, nth), endpoint.apart))
    }
  }
  await writes.close()
}

async function taken(writes: WriteSide, { id }: Added, nowMs: number): Promise<readonly number[]> {
  return (await endpointOf(writes, id, nowMs).take()).map(({ body }) => nthOf(String(body)))
}

const idsOf = (parcels: readonly number[]) => parcels.map((parcel) => IDS[parcel] ?? '')
const timesOf = (taken: readonly number[], nth: number) => taken.filter((one) => one === nth).length

function bodyOf({ atMs, status }: Fact, text: string, trackingIds: readonly string[]): Buffer {
  return pushBody({ eventTime: new Date(atMs).toISOString(), status, texts: { en: text }, trackingIds })
}

function nthOf(body: string): number {
  const atMs = Date.parse(/"eventTime":"([^"]+)"/.exec(body)?.[1] ?? '')
  return FACTS.find((one) => one.atMs === atMs)?.nth ?? -1
}

async function replayFeed(writes: WriteSide, nowMs: number): Promise<void> {
  while (!(await writes.replayFeed({ limit: 100, nowMs })).isDone);
}

/** Returns the sequence of an event that goes to endpoints, counted from the oldest in the feed. */
async function sequenceOf(path: string, nth: number): Promise<number> {
  const rows = await storedRows<{ sequence: number }>(path, 'select sequence from feed where payload_ref is not null order by sequence')
  return Number(rows[nth]?.sequence)
}

async function beganAt(path: string, id: string): Promise<number> {
  return await storedNumber(path, `select began_at_ms from endpoint where id = ${id}`)
}

/** Returns false if there was nothing to prune. */
async function pruneFeed(path: string): Promise<boolean> {
  const last = await storedNumber(path, 'select coalesce(max(sequence), 0) from feed')
  if (last > 0) await pruneStoredFeed(path, last)
  return last > 0
}

describe.each(engines)('messages to endpoints on $name', (engine) => {
  test.each(MIXTURES)('7.1, 6.6: every endpoint gets exactly once each entry $name', async (mixture) => {
    await fc.assert(
      fc.asyncProperty(worldsOf(mixture), (world) => withPlace(engine, (path) => run(engine, path, world))),
      { numRuns: Number(process.env.RUNS ?? runsOn(engine, 60, 6)), seed: Number(process.env.SEED ?? 20261124) },
    )
  })
})
