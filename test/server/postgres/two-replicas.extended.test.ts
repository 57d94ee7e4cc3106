import { expect, test, vi } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { createCourier } from '../../support/delivery/courier.ts'
import { addEndpoint, endpointOf } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { NOON } from '../../support/runner/constants.ts'
import { byForm, casesOf } from '../../support/runner/long-form.ts'
import { newPlace } from '../../support/store/engines.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'
import { storedNumber, storedRows } from '../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

const RACES = byForm(10, 40, 200)
const timeOf = (nth: number) => new Date(NOON - 86_400_000 + nth * 1000).toISOString()
const pushOf = (trackingIds: readonly string[], nth: number) => incomingPush(pushBody({ trackingIds, eventTime: timeOf(nth) }), NOON)

async function openTwo() {
  const place = await newPlace(postgres)
  const one = await openStore(NOON, postgres, place)
  const other = await openStore(NOON, postgres, place)
  return { place, one, other, both: [one, other] as const }
}

const WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

test.each(['one', 'other'] as const)('racing pushes of a new parcel at two replicas give one parcel when %s comes first', async (first) => {
  const { place, ...stores } = await openTwo()
  const inOrder = first === 'one' ? [stores.one, stores.other] : [stores.other, stores.one]
  // No store can write an identifier until both wait for the lock.
  const holding = await openTestPool(place).connect()
  await holding.query('begin; lock table identifier in share mode')
  const records: Promise<unknown>[] = []
  for (const [at, store] of inOrder.entries()) {
    records.push(store.record(pushOf(['4711'], at)))
    await vi.waitFor(async () => expect(await storedNumber(place, WAITING)).toBe(at + 1))
  }
  await holding.query('commit')
  holding.release()
  await Promise.all(records)
  const [here, there] = [await stores.one.reads.findParcel('4711'), await stores.other.reads.findParcel('4711')]
  expect(here?.entries).toHaveLength(2)
  expect(there).toEqual(here)
  expect(await storedNumber(place, 'select count(*) from parcel')).toBe(1)
})

test('simultaneous pushes of a new parcel at two replicas are kept in one parcel', async () => {
  const { one, other, both, place } = await openTwo()
  for (let race = 0; race < RACES; race++) {
    const id = String(10_000 + race)
    await Promise.all([0, 1, 2, 3].map((nth) => both[nth % 2 === 0 ? 0 : 1].record(pushOf([id], 2 * nth), pushOf([id], 2 * nth + 1))))
    const [here, there] = [await one.reads.findParcel(id), await other.reads.findParcel(id)]
    expect(here?.entries).toHaveLength(8)
    expect(there).toEqual(here)
  }
  expect(await storedNumber(place, 'select count(*) from parcel')).toBe(RACES)
})

test('if two replicas learn an identifier at once, their two parcels become one', async () => {
  const { one, other, place } = await openTwo()
  for (let race = 0; race < RACES / 2; race++) {
    const [shared, first, second] = [`5${10_000 + race}`, `6${10_000 + race}`, `7${10_000 + race}`]
    await Promise.all([one.record(pushOf([first, shared], 1)), other.record(pushOf([shared, second], 2))])
    const found = await Promise.all([shared, first, second].map((id) => one.reads.findParcel(id)))
    expect(found.map((view) => [view?.parcelId, view?.entries.length])).toEqual(found.map(() => [found[0]?.parcelId, 2]))
  }
  expect(await storedNumber(place, 'select count(*) from parcel')).toBe(RACES / 2)
})

test('the same push at two replicas at once is kept once, and its repeat is counted', async () => {
  const { one, other, both, place } = await openTwo()
  const endpoint = await addEndpoint(one.writes, NOON)
  for (let race = 0; race < RACES / 2; race++) {
    const pushes = [pushOf([String(20_000 + race)], race), incomingPush(Buffer.from(`nonsense ${race}`), NOON)]
    const reports = await Promise.all([one, other, one, other].map(({ record }) => record(...pushes)))
    for (const [nth, kind] of ['recorded', 'quarantined'].entries()) {
      const kinds = reports.map(({ outcomes }) => String(outcomes[nth]?.kind)).toSorted()
      expect(kinds).toEqual(['duplicate', 'duplicate', 'duplicate', kind].toSorted())
    }
  }
  const rows = await storedRows(
    place,
    'select count(*) as pushes, count(distinct digest) as digests, sum(duplicates)::bigint as duplicates from inbox',
  )
  expect(rows).toEqual([{ pushes: RACES, digests: RACES, duplicates: 3 * RACES }])
  expect(await endpoint.take()).toHaveLength(RACES / 2)
  expect(both.flatMap(({ errors }) => errors)).toEqual([])
})

test('1.4: a join while another replica records loses nothing, and queues nothing twice', async () => {
  const { one, other, place } = await openTwo()
  const endpoint = await addEndpoint(one.writes, NOON)
  for (let race = 0; race < RACES / 2; race++) {
    const [left, right] = [`3${10_000 + race}`, `4${10_000 + race}`]
    await one.record(pushOf([left], 0), pushOf([right], 1))
    await Promise.all([
      one.record(pushOf([left, right], 2)),
      other.record(pushOf([right], 3), pushOf([left], 4)),
      other.record(pushOf([left], 5)),
      one.record(pushOf([right], 6)),
    ])
    const [here, there] = [await one.reads.findParcel(left), await other.reads.findParcel(right)]
    expect(here?.entries).toHaveLength(7)
    expect(there).toEqual(here)
  }
  const sequences = (await endpoint.take()).map(({ sequence }) => sequence)
  expect(sequences).toHaveLength((7 * RACES) / 2)
  expect(new Set(sequences).size).toBe(sequences.length)
  expect(await storedNumber(place, 'select count(*) from delivery where state < 2')).toBe(0)
  expect(await storedNumber(place, 'select count(*) from delivery where parcel_id not in (select id from parcel)')).toBe(0)
})

test('an endpoint that one replica adds while the other records gets each later event once', async () => {
  const { one, other } = await openTwo()
  for (let race = 0; race < casesOf(25, 10); race++) {
    const id = String(50_000 + race)
    const [, , added] = await Promise.all([
      other.record(pushOf([id], 0)),
      one.record(pushOf([id], 1)),
      addEndpoint(one.writes, NOON, { name: `added ${race}` }),
      other.record(pushOf([id], 2)),
    ])
    const here = endpointOf(one.writes, added.id, NOON)
    const before = (await here.take()).map(({ sequence }) => sequence)
    expect([new Set(before).size, before.length <= 3]).toEqual([before.length, true])
    const reports = [await other.record(pushOf([id], 3)), await one.record(pushOf([id], 4))]
    expect(reports.map(({ outcomes }) => outcomes)).toMatchObject([[{ queued: race + 1 }], [{ queued: race + 1 }]])
    expect(await here.take()).toHaveLength(2)
  }
})

test('7.3: settling and claiming keep the order while another replica records and replays', async () => {
  const { one, other, place } = await openTwo()
  const { id } = await addEndpoint(one.writes, NOON)
  const courier = createCourier(one.writes, NOON)
  const ids = ['8001', '8002']
  let nth = 0
  const any = { endpointId: id, fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null }
  const replay = (limit: number, fromSequence: number) =>
    other.writes.replayDeliveries({
      selection: { ...any, states: ['delivered'], fromSequence },
      to: id,
      after: null,
      untilMs: NOON,
      limit,
      nowMs: NOON,
    })
  for (let race = 0; race < RACES; race++) {
    const id = ids[race % 2] ?? ''
    await Promise.all([
      courier.round((at) => (at + race) % 3 > 0),
      race % 8 < 2 ? other.record(pushOf([id], nth++)) : replay(2, race % 20),
      replay(1, race % 7),
      courier.round(),
    ])
    if (race % 10 < 9) continue
    await courier.drain()
    expect([race, await storedNumber(place, 'select count(*) from delivery where state < 2'), courier.wrong]).toEqual([race, 0, []])
  }
})

test('a reader that follows the feed misses no sequence, even with two replicas', async () => {
  const { one, other, both } = await openTwo()
  const rounds = casesOf(20, 8)
  const recording = Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      for (let at = 0; at < rounds; at++) {
        const ids = at % 5 === 4 ? [[`90${writer}0`, `90${writer}1`, String(7000 + at)]] : [[`90${writer}${at % 2}`], [String(7000 + at)]]
        await both[writer % 2 === 0 ? 0 : 1].record(...ids.map((of) => pushOf(of, writer * 100 + at)))
      }
    }),
  )
  let isOver = false
  const done = recording.finally(() => {
    isOver = true
  })
  const follow = async ({ reads }: typeof one) => {
    const seen: number[] = []
    const read = async () => {
      const { items, next, last } = await reads.readFeed({ after: seen.at(-1) ?? 0, limit: 50 })
      seen.push(...items.map(({ sequence }) => sequence))
      expect(last).toBeGreaterThanOrEqual(next)
      return items.length
    }
    while (!isOver) await read()
    while ((await read()) > 0);
    return seen
  }
  const [here, there] = await Promise.all([follow(one), follow(other), done])
  const all: number[] = []
  for (let after = 0; ; ) {
    const { items, next } = await one.reads.readFeed({ after, limit: 100 })
    if (items.length === 0) break
    all.push(...items.map(({ sequence }) => sequence))
    after = next
  }
  expect(here).toEqual(all)
  expect(there).toEqual(all)
  expect(all.length).toBeGreaterThanOrEqual(8 * rounds)
})
