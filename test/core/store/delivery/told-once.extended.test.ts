import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openWriteSide } from '../../../../src/assembly/open-write-side.ts'
import { type EndpointSettings, noFilters } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import type { RecordRules } from '../../../../src/core/domain/history/recording.ts'
import type { WriteSide } from '../../../../src/core/flow/write-side.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { addEndpoint, endpointOf } from '../../../support/delivery/stored-endpoint.ts'
import { createTellingModel, type Fact, type Owed } from '../../../support/delivery/telling-model.ts'
import { aPoll, pushBody } from '../../../support/history/builders.ts'
import { strictLog } from '../../../support/history/observed.ts'
import { cadence, deliverOptions, recordOptions } from '../../../support/history/policy.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { runsOn } from '../../../support/runner/long-form.ts'
import { upgradeToBegan } from '../../../support/store/earlier-schema.ts'
import { engines, withPlace } from '../../../support/store/engines.ts'
import { pruneStoredFeed, storedNumber, storedRows } from '../../../support/store/stored-rows.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

/** Up to which event each endpoint has read the feed, and how many messages that are. */
const READ_TO = `
  select id, queued_to, (select count(*) from feed where payload_ref is not null and sequence <= queued_to) as before from endpoint`
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
const IDS = ['1001', '2002', '3003', '4004', '5005', '6006']

/** What worlds are made of. `joins`: of ten observations, how many join parcels. The rest: how many steps there are of a kind, beside six pushes. */
interface Mixture {
  readonly facts: readonly Fact[]
  readonly texts: readonly string[]
  readonly joins: number
  readonly polls: number
  /** Endpoints that are added. */
  readonly adds: number
  /** Readings of a part of the feed. */
  readonly reads: number
}

const anAdd = fc.record({ kind: fc.constant('add'), backfill: fc.boolean(), from: fc.option(fc.nat(9)) })

const stepOf = ({ facts, texts, joins, polls, adds, reads }: Mixture) => {
  const fact = fc.constantFrom(...facts)
  /** The parcels of an observation. Those that it names beside the first are joined with it. */
  const about = fc.oneof(
    { arbitrary: fc.nat(IDS.length - 1).map((one) => [one]), weight: 10 - joins },
    { arbitrary: fc.uniqueArray(fc.nat(IDS.length - 1), { minLength: 2, maxLength: 3 }), weight: joins },
  )
  return fc.oneof(
    {
      arbitrary: fc.record({ kind: fc.constant('push'), fact, about, text: fc.constantFrom(...texts) }),
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
      weight: polls,
    },
    { arbitrary: anAdd, weight: adds },
    { arbitrary: fc.record({ kind: fc.constant('turn'), endpoint: fc.nat(9) }), weight: 2 },
    { arbitrary: fc.record({ kind: fc.constant('read'), limit: fc.constantFrom(1, 2, 5) }), weight: reads },
    { arbitrary: fc.record({ kind: fc.constant('prune') }), weight: 1 },
  )
}

/**
 * The steps, each with the time that passes before it. `ending`: all parcels become one, and another endpoint is added. `upgrade`: the number
 * of steps after which the store is upgraded. `limit`: how many events of the feed are read at once in the end.
 */
const worldsOf = (mixture: Mixture) => {
  const minutes = fc.integer({ min: 1, max: 30 })
  const joinAll = {
    kind: fc.constant('push'),
    fact: fc.constantFrom(...mixture.facts),
    about: fc.constant([...IDS.keys()]),
    text: fc.constant('Arrived'),
  }
  return fc.record({
    steps: fc.array(fc.tuple(stepOf(mixture), minutes), { minLength: 4, maxLength: 30, size: 'max' }),
    ending: fc.option(fc.tuple(fc.tuple(fc.record(joinAll), minutes), fc.tuple(anAdd, minutes))),
    upgrade: fc.option(fc.integer({ min: 1, max: 12 })),
    limit: fc.constantFrom(1, 2, 100),
  })
}
type World = ReturnType<typeof worldsOf> extends fc.Arbitrary<infer T> ? T : never

const MIXTURES = [
  { name: 'of many parcels', facts: FACTS, texts: ['Arrived', 'Framme'], joins: 1, polls: 5, adds: 2, reads: 1 },
  // Parcels report the same in the same words, as pushes do, and the readers begin between the events about it, and read on between the joins.
  { name: 'of parcels that are joined', facts: FACTS.slice(2, 4), texts: ['Arrived'], joins: 2, polls: 1, adds: 2, reads: 2 },
]

interface Added extends Owed {
  readonly id: string
  readonly taken: number[]
}

async function run(engine: Engine, path: string, { steps, ending, upgrade, limit }: World): Promise<void> {
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
    endpoints.push(Object.assign(model.begin(settings, fromPlace, nowMs), { id, taken: [] }))
  }
  /** Lets the endpoint that is furthest behind read so many events of the feed. */
  async function read(limit: number): Promise<boolean> {
    const { isDone } = await writes.replayFeed({ limit, nowMs })
    const places = await storedRows<{ id: number; queued_to: number | null; before: number }>(path, READ_TO)
    for (const { id, queued_to: to, before } of places)
      for (const one of endpoints)
        if (one.id === String(id)) model.read(one, to === null ? model.recorded() : model.kept() + Number(before), to === null)
    return isDone
  }
  const readAll = async () => {
    while (!(await read(limit)));
  }
  await add({}, null)
  await add({ backfill: true }, null)
  await add({ filters: { ...noFilters, status: ['DeliverySucceeded'] } }, null)

  for (const [nth, [one, minutes]] of [...steps, ...(ending ?? [])].entries()) {
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
      if (endpoints.length < 12) await add({ backfill: one.backfill }, model.placeFrom(one.from))
    } else if (one.kind === 'turn') {
      const endpoint = endpoints[one.endpoint % endpoints.length]
      if (endpoint === undefined) continue
      await writes.changeEndpoint({ id: endpoint.id, change: { backfill: model.turn(endpoint) }, key: null, nowMs })
    } else if (one.kind === 'read') {
      await read(one.limit)
    } else {
      await readAll()
      if (await pruneFeed(path)) model.prune()
    }
  }
  await readAll()
  for (const endpoint of endpoints) {
    const all = [...endpoint.taken, ...(await taken(writes, endpoint, nowMs))].sort((a, b) => a - b)
    expect(all).toEqual(model.owedTo(endpoint))
  }
  await writes.close()
}

async function taken(writes: WriteSide, { id }: Added, nowMs: number): Promise<readonly number[]> {
  return (await endpointOf(writes, id, nowMs).take()).map(({ body }) => nthOf(String(body)))
}

const idsOf = (parcels: readonly number[]) => parcels.map((parcel) => IDS[parcel] ?? '')

function bodyOf({ atMs, status }: Fact, text: string, trackingIds: readonly string[]): Buffer {
  return pushBody({ eventTime: new Date(atMs).toISOString(), status, texts: { en: text }, trackingIds })
}

function nthOf(body: string): number {
  const atMs = Date.parse(/"eventTime":"([^"]+)"/.exec(body)?.[1] ?? '')
  return FACTS.find((one) => one.atMs === atMs)?.nth ?? -1
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
  test.each(MIXTURES)('7.1, 6.6: endpoints get exactly what they are owed of entries $name', async (mixture) => {
    await fc.assert(
      fc.asyncProperty(worldsOf(mixture), (world) => withPlace(engine, (path) => run(engine, path, world))),
      {
        numRuns: Number(process.env.RUNS ?? runsOn(engine, 80, 8)),
        seed: Number(process.env.SEED ?? 20261124),
      },
    )
  })
})
