import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ReplayCursor, ReplayedBatch } from '../../../src/domain/delivery/delivery-list.ts'
import { type EndpointSettings, noFilters } from '../../../src/domain/delivery/endpoint.ts'
import { boundsOf, selectMissing } from '../../../src/domain/delivery/missing.ts'
import type { WriteSide } from '../../../src/flow/write-side.ts'
import type { Engine } from '../../../src/store/contract.ts'
import { openWriteSide } from '../../../src/wiring/write-side.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { aPoll, pushBody } from '../../support/history/builders.ts'
import { strictLog } from '../../support/history/observed.ts'
import { deliverOptions, recordOptions } from '../../support/history/policy.ts'
import { NOON } from '../../support/runner/constants.ts'
import { runsOn } from '../../support/runner/long-form.ts'
import { engines, withPlace } from '../../support/store/engines.ts'
import { pruneStoredFeed, storedNumber } from '../../support/store/stored-rows.ts'
import { incomingPush } from '../../support/store/write-side.ts'

const clock = { now: () => NOON, monotonic: () => performance.now() }

/** Every event has a different time, before or after the first news of its parcel. */
const EVENTS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((nth) => ({
  nth,
  parcel: nth % 2,
  atMs: NOON + (nth - 6) * 600_000,
  status: nth % 3 === 0 ? 'DeliverySucceeded' : 'TerminalArrived',
}))
type Event = (typeof EVENTS)[number]
const IDS = ['1001', '2002']

const event = fc.constantFrom(...EVENTS)
const step = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constant('push'), event, text: fc.constantFrom('Arrived', 'Framme'), joins: fc.nat(9) }), weight: 6 },
  {
    arbitrary: fc.record({
      kind: fc.constant('poll'),
      parcel: fc.nat(1),
      listed: fc.uniqueArray(event, { maxLength: 6 }),
      watch: fc.boolean(),
      language: fc.constantFrom('en', 'sv'),
      joins: fc.nat(9),
    }),
    weight: 4,
  },
  { arbitrary: fc.record({ kind: fc.constant('add'), backfill: fc.boolean(), fromStart: fc.boolean() }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant('turn'), endpoint: fc.nat(9) }), weight: 2 },
  {
    arbitrary: fc.record({
      kind: fc.constant('missing'),
      endpoint: fc.nat(9),
      parcel: fc.option(fc.nat(1)),
      limit: fc.integer({ min: 1, max: 4 }),
    }),
    weight: 2,
  },
  { arbitrary: fc.record({ kind: fc.constant('queue') }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant('prune') }), weight: 1 },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** A message about an event: to endpoints with backfill, to all endpoints, or (`revealed`) to all that did not get it as backfill. */
interface Telling {
  readonly event: Event
  readonly kind: 'backfill' | 'all' | 'revealed'
  /** For `revealed`: the index of the earlier backfill message about the event. Otherwise -1. */
  readonly of: number
}

/** What an endpoint must get: all messages from index `from` on, and the backfill messages in the ranges of `backfill`. */
interface Owed {
  readonly status: string | null
  readonly from: number
  /** Each range with backfill: the index of its first message, and the index after its last. */
  readonly backfill: [from: number, to: number][]
  /** The indexes of backfill messages that were sent afterwards, because the endpoint had missed them. */
  readonly sentLater: Set<number>
}

function createModel() {
  const tellings: Telling[] = []
  const knownSinceMs = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  let isJoined = false

  const last = (of: Event) => tellings.findLastIndex((telling) => telling.event === of)
  function know(parcel: number, sinceMs: number): void {
    for (const one of isJoined ? [0, 1] : [parcel]) knownSinceMs[one] = Math.min(knownSinceMs[one] ?? sinceMs, sinceMs)
  }
  function wants({ from, status }: Owed, place: number): boolean {
    return place >= from && (status === null || status === tellings[place]?.event.status)
  }
  function hadBackfill({ backfill, sentLater }: Owed, place: number): boolean {
    return sentLater.has(place) || backfill.some(([from, to]) => place >= from && place < to)
  }
  return {
    tellings,
    join(): void {
      isJoined = true
      know(0, Math.min(...knownSinceMs))
    },
    know,
    eventAt(place: number): Event {
      const telling = tellings[place]
      if (telling === undefined) throw new Error('there is no such message')
      return telling.event
    },
    isOf: (parcel: number, of: Event) => isJoined || of.parcel === parcel,
    push(pushed: Event): void {
      know(pushed.parcel, Math.min(pushed.atMs, NOON))
      const before = last(pushed)
      if (before === -1) tellings.push({ event: pushed, kind: 'all', of: -1 })
      else if (tellings[before]?.kind === 'backfill') tellings.push({ event: pushed, kind: 'revealed', of: before })
    },
    /** The relay numbers the entries of a poll from the oldest to the newest. */
    poll(listed: readonly Event[]): void {
      for (const polled of listed.toSorted((a, b) => a.atMs - b.atMs)) {
        if (last(polled) !== -1) continue
        const backfill = polled.atMs < (knownSinceMs[polled.parcel] ?? 0)
        tellings.push({ event: polled, kind: backfill ? 'backfill' : 'all', of: -1 })
      }
    },
    /** The indexes, from `from` on, of the messages that an endpoint misses. */
    missingAt(endpoint: Owed, from: number): readonly number[] {
      return tellings.flatMap(({ event: of, kind }, place) => {
        if (kind !== 'backfill' || last(of) !== place || place < from || !wants(endpoint, place)) return []
        return hadBackfill(endpoint, place) ? [] : place
      })
    },
    owedTo(endpoint: Owed): readonly number[] {
      const owed = tellings.filter(({ kind, of: earlier }, place) => {
        if (!wants(endpoint, place)) return false
        return kind === 'all' || (kind === 'backfill' ? hadBackfill(endpoint, place) : !hadBackfill(endpoint, earlier))
      })
      return owed.map(({ event: of }) => of.nth).sort((a, b) => a - b)
    },
  }
}

async function run(engine: Engine, path: string, steps: readonly Step[]): Promise<void> {
  const writes = await openWriteSide({ sqlitePath: path, engine, record: recordOptions, deliver: deliverOptions }, clock, strictLog)
  const model = createModel()
  const endpoints: (Owed & Awaited<ReturnType<typeof addEndpoint>>)[] = []
  /** The index of the first message that is still in the feed. */
  let kept = 0

  async function add(settings: Partial<EndpointSettings>, fromStart: boolean): Promise<void> {
    const from = fromStart ? 0 : null
    const name = `endpoint ${endpoints.length}`
    const added = await addEndpoint(writes, NOON, { name, ...settings, ...(from === null ? {} : { from }) })
    const place = fromStart ? 0 : model.tellings.length
    const status = settings.filters?.status?.[0] ?? null
    endpoints.push({
      ...added,
      status,
      from: place,
      backfill: settings.backfill === true ? [[place, Number.POSITIVE_INFINITY]] : [],
      sentLater: new Set(),
    })
  }
  await add({}, false)
  await add({ backfill: true }, false)
  await add({ filters: { ...noFilters, status: ['DeliverySucceeded'] } }, false)

  for (const one of steps) {
    if (one.kind === 'push') {
      if (one.joins === 0) model.join()
      model.push(one.event)
      await writes.record([incomingPush(bodyOf(one.event, one.text, one.joins === 0), NOON)])
    } else if (one.kind === 'poll') {
      if (one.joins === 0) model.join()
      const listed = one.listed.filter((of) => model.isOf(one.parcel, of))
      if (one.watch) model.know(one.parcel, NOON)
      model.poll(listed)
      const observation = aPoll({
        asked: IDS[one.parcel] ?? '',
        language: one.language,
        askedAtMs: NOON,
        trackingIds: one.joins === 0 ? IDS : [IDS[one.parcel] ?? ''],
        statuses: listed.map(({ atMs, status }) => ({ eventTimestamp: new Date(atMs).toISOString(), status })),
      })
      await writes.record([{ kind: 'poll', observation, watch: one.watch }])
    } else if (one.kind === 'add') {
      if (endpoints.length < 7) await add({ backfill: one.backfill }, one.fromStart && kept === 0)
    } else if (one.kind === 'turn') {
      await replayFeed(writes)
      const endpoint = endpoints[one.endpoint % endpoints.length]
      if (endpoint === undefined) continue
      const stretch = endpoint.backfill.at(-1)
      const isOn = stretch?.[1] === Number.POSITIVE_INFINITY
      if (isOn) stretch[1] = model.tellings.length
      else endpoint.backfill.push([model.tellings.length, Number.POSITIVE_INFINITY])
      await writes.changeEndpoint({ id: endpoint.id, change: { backfill: !isOn }, key: null, nowMs: NOON })
    } else if (one.kind === 'missing') {
      await replayFeed(writes)
      const endpoint = endpoints[one.endpoint % endpoints.length]
      const parcelId = one.parcel === null ? null : await parcelIdOf(path, IDS[one.parcel] ?? '')
      if (endpoint === undefined || parcelId === 0) continue
      const missing = model.missingAt(endpoint, kept).filter((place) => one.parcel === null || model.isOf(one.parcel, model.eventAt(place)))
      expect(await sendMissing(writes, { to: endpoint.id, parcelId, limit: one.limit })).toBe(missing.length)
      for (const place of missing) endpoint.sentLater.add(place)
    } else if (one.kind === 'queue') {
      await writes.replayFeed({ limit: 2, nowMs: NOON })
    } else {
      await replayFeed(writes)
      if (await pruneFeed(path)) kept = model.tellings.length
    }
  }
  await replayFeed(writes)
  for (const endpoint of endpoints) {
    const taken = (await endpoint.take()).map(({ body }) => nthOf(String(body))).sort((a, b) => a - b)
    expect(taken).toEqual(model.owedTo(endpoint))
  }
  await writes.close()
}

function bodyOf({ atMs, status, parcel }: Event, text: string, joins: boolean): Buffer {
  const trackingIds = joins ? IDS : [IDS[parcel] ?? '']
  return pushBody({ eventTime: new Date(atMs).toISOString(), status, texts: { en: text }, trackingIds })
}

function nthOf(body: string): number {
  const atMs = Date.parse(/"eventTime":"([^"]+)"/.exec(body)?.[1] ?? '')
  return EVENTS.find((one) => one.atMs === atMs)?.nth ?? -1
}

async function replayFeed(writes: WriteSide): Promise<void> {
  while (!(await writes.replayFeed({ limit: 100, nowMs: NOON })).isDone);
}

/** Returns how many events were queued. */
async function sendMissing(
  writes: WriteSide,
  { to, parcelId, limit }: { readonly to: string; readonly parcelId: number | null; readonly limit: number },
): Promise<number> {
  const missing = selectMissing({ ...boundsOf(null, null), sequence: null }, parcelId)
  let count = 0
  let after: ReplayCursor | null = null
  do {
    const batch: ReplayedBatch | null = await writes.replayDeliveries({ missing, to, after, limit, nowMs: NOON })
    count += batch?.count ?? 0
    after = batch?.next ?? null
  } while (after !== null)
  return count
}

/** Returns 0 if the relay does not know the parcel. */
async function parcelIdOf(path: string, identifier: string): Promise<number> {
  const found = `select coalesce((select parcel_id from identifier where value = '${identifier}'), 0)`
  return await storedNumber(path, found)
}

/** Returns false if there was nothing to prune. */
async function pruneFeed(path: string): Promise<boolean> {
  const last = await storedNumber(path, 'select coalesce(max(sequence), 0) from feed')
  if (last > 0) await pruneStoredFeed(path, last)
  return last > 0
}

describe.each(engines)('messages to endpoints on $name', (engine) => {
  test('7.1, 6.6: every endpoint gets exactly once each event that it should get, in any order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 30 }), (steps) => withPlace(engine, (path) => run(engine, path, steps))),
      { numRuns: Number(process.env.RUNS ?? runsOn(engine, 60, 6)), seed: Number(process.env.SEED ?? 20261124) },
    )
  })
})
