import { describe, expect, test } from 'vitest'
import { KEPT_FOREVER } from '../../../../src/upkeep/retention/retention.rules.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { openAgingStore } from '../../../support/store/aging-store.ts'
import { engines } from '../../../support/store/engines.ts'
import { storedNumber } from '../../../support/store/stored-rows.ts'
import { incomingPush } from '../../../support/store/write-side.ts'

const DELIVERIES = { endpointId: null, parcelId: null, state: null, before: null, limit: 100 } as const
const NOTHING = KEPT_FOREVER
const NOT_JSON = Buffer.from('not an event')

describe.each(engines)('retention on $name', (engine) => {
  test('old bytes are removed; entries and digests stay, so a repeated push is still recognised', async () => {
    const { report, passDays, reads, pushBytes, bodyOf, last } = await openAgingStore(engine)
    const body = bodyOf('70000001')
    await pushBytes(body)
    await passDays(6)
    expect(await reads.inspectPush((await reads.listInbox({ state: null, before: null, limit: 1 })).pushes[0]?.inboxId ?? 0)).toMatchObject(
      {
        bodyBytes: body.length,
      },
    )
    await report('70000002')
    await passDays(1)
    expect((await last()).removed).toMatchObject({ pushBytes: 1 })
    const { pushes } = await reads.listInbox({ state: null, before: null, limit: 10 })
    expect(pushes.map(({ bodyBytes, identifiers }) => [bodyBytes !== null, identifiers])).toEqual([
      [true, ['70000002']],
      [false, ['70000001']],
    ])
    expect((await reads.findParcel('70000001'))?.entries).toHaveLength(1)
    expect((await pushBytes(body)).outcomes).toEqual([{ kind: 'duplicate' }])
  })

  test('the bytes of old answers are removed, and the history from them stays', async () => {
    const { path, poll, passDays, reads } = await openAgingStore(engine)
    await poll({ asked: '70000001', trackingIds: ['70000001'] })
    const kept = () => storedNumber(path, 'select count(*) from answer where body is not null')
    await passDays(6)
    expect(await kept()).toBe(1)
    await passDays(1)
    expect(await kept()).toBe(0)
    expect((await reads.findParcel('70000001'))?.entries.length).toBeGreaterThan(0)
  })

  test('old ended deliveries are removed with their attempts', async () => {
    const { path, writes, report, passDays, reads } = await openAgingStore(engine)
    const { take } = await addEndpoint(writes, NOON)
    for (const id of ['70000001', '70000002']) await report(id)
    expect(await take()).toHaveLength(2)
    await passDays(3)
    expect((await reads.listDeliveries(DELIVERIES)).deliveries).toHaveLength(2)
    await passDays(1)
    expect((await reads.listDeliveries(DELIVERIES)).deliveries).toEqual([])
    expect(await storedNumber(path, 'select count(*) from attempt where delivery_id not in (select id from delivery)')).toBe(0)
  })

  test('a batch reads a limited number of old deliveries, and finds those that still wait', async () => {
    const { writes, pass, passDays, prune, record, bodyOf, now, last } = await openAgingStore(engine)
    const removed = await addEndpoint(writes, NOON, { enabled: false })
    const parcels = Array.from({ length: 1100 }, (_, at) => incomingPush(bodyOf(`7${String(at).padStart(7, '0')}`), now()))
    await record(...parcels)
    await addEndpoint(writes, NOON, { name: 'stock', enabled: false })
    pass(1)
    await record(incomingPush(bodyOf('80000001'), now()))
    await passDays(2)
    await writes.removeEndpoint({ id: removed.id, nowMs: now() })
    while (!(await writes.cancelRemoved({ limit: 100 })).isDone);
    await passDays(1)
    pass(DAY_MS)
    expect(await prune()).toBe(2)
    expect((await last()).held).toMatchObject({ overdue: 1 })
  })

  test('data that is overdue for 30 days is reported once', async () => {
    const long = { rawMs: 2, historyMs: 90, deliveriesMs: 2, feedMs: 2, auditMs: 90, heldMs: 90 }
    const days = Object.fromEntries(Object.entries(long).map(([name, count]) => [name, count * DAY_MS]))
    const { writes, report, passDays, told } = await openAgingStore(engine, { ...NOTHING, ...days })
    await addEndpoint(writes, NOON, { enabled: false })
    await report('70000001')
    await passDays(31)
    expect(await told()).toEqual([])
    await passDays(3)
    expect(await told()).toMatchObject([{ event: 'retention_held', detail: { held: { overdue: 1, pushBytes: 1 } } }])
  })

  test('a push in quarantine keeps its bytes until it is dismissed', async () => {
    const { writes, pushBytes, report, passDays, reads, inboxIds } = await openAgingStore(engine)
    await pushBytes(NOT_JSON)
    await pushBytes(Buffer.from('neither'))
    await report('70000001')
    const [open = 0, dismissed = 0] = await inboxIds()
    await writes.dismissPush({ inboxId: dismissed })
    await passDays(7)
    expect(await reads.inspectPush(open)).toMatchObject({ state: 'quarantined', bodyBytes: NOT_JSON.length })
    expect(await reads.inspectPush(dismissed)).toMatchObject({ state: 'dismissed', bodyBytes: null })
    await passDays(4)
    expect(await reads.inspectPush(open)).toMatchObject({ state: 'quarantined' })
    // The push belongs to no parcel, so all of it is removed.
    expect(await reads.inspectPush(dismissed)).toBeNull()
  })

  test('a quarantined push older than `held` is given up, and operators are notified', async () => {
    const { pushBytes, report, passDays, reads, inboxIds, told } = await openAgingStore(engine)
    await pushBytes(NOT_JSON)
    await report('70000001')
    const [open = 0] = await inboxIds()
    await passDays(20)
    expect(await reads.inspectPush(open)).toMatchObject({ state: 'quarantined', bodyBytes: NOT_JSON.length })
    await passDays(1)
    expect(await reads.inspectPush(open)).toBeNull()
    expect((await told()).map(({ event, detail }) => [event, detail.givenUp])).toContainEqual(['retention_gave_up', { pushBytes: 1 }])
  })

  test('texts that only a removed parcel used are removed too, and others stay', async () => {
    const { path, writes, report, passDays, last } = await openAgingStore(engine)
    await report('70000001', { location: 'only here' })
    await report('70000001', { location: 'everywhere' })
    await report('70000002', { location: 'everywhere' })
    await writes.unwatch({ identifier: '70000001' })
    const count = async (word: string) => await storedNumber(path, `select count(*) from content where json like '%${word}%'`)
    expect([await count('only here'), await count('everywhere')]).toEqual([1, 1])
    await passDays(12)
    expect((await last()).removed).toMatchObject({ parcels: 1, texts: 1 })
    expect([await count('only here'), await count('everywhere')]).toEqual([0, 1])
    // A writer that remembers the old id of the text must not use it.
    await report('70000003', { location: 'only here' })
    expect(await count('only here')).toBe(1)
    expect(await storedNumber(path, 'select count(*) from sighting where content_id not in (select id from content)')).toBe(0)
  })

  test('a text that is marked for deletion stays if it is used again', async () => {
    const { path, writes, report, pass, passDays, prune, now, reads } = await openAgingStore(engine)
    await report('70000001', { location: 'again' })
    await writes.unwatch({ identifier: '70000001' })
    await report('70000002')
    await passDays(11)
    pass(DAY_MS)
    // Work in batches until the parcel is removed and its text is only marked.
    for (let batch = 0; batch < 20 && (await reads.findParcel('70000001')) !== null; batch++) await writes.prune({ nowMs: now() })
    expect(await reads.findParcel('70000001')).toBeNull()
    expect(await storedNumber(path, 'select count(*) from content where is_unused = 1')).toBe(1)
    await report('70000003', { location: 'again' })
    await prune()
    expect(await storedNumber(path, 'select count(*) from content where is_unused = 1')).toBe(0)
    expect(await storedNumber(path, 'select count(*) from sighting where content_id not in (select id from content)')).toBe(0)
    expect((await reads.findParcel('70000003'))?.entries).toMatchObject([{ location: 'again' }])
  })

  test('a store with new texts every day stops growing when parcels are removed as fast as added', async () => {
    const { path, writes, report, pass, prune } = await openAgingStore(engine)
    const kept: number[] = []
    for (let day = 0; day < 26; day++) {
      const id = String(72_000_000 + day)
      await report(id, { location: `text of day ${day}` })
      await writes.unwatch({ identifier: id })
      pass(DAY_MS)
      await prune()
      kept.push(await storedNumber(path, 'select count(*) from content'))
    }
    expect(kept.slice(13)).toEqual(kept.slice(13).map(() => kept[13]))
  })

  test('a parcel is removed with the parcels that it joined, and with the record of the join', async () => {
    const { path, writes, poll, report, passDays, reads } = await openAgingStore(engine)
    await report('70000001')
    await report('70000002')
    await poll({ asked: '70000001', trackingIds: ['70000001', '70000002'] })
    expect(await storedNumber(path, 'select count(*) from audit')).toBe(1)
    await writes.unwatch({ identifier: '70000001' })
    await report('70000003')
    await passDays(12)
    expect([await reads.findParcel('70000001'), await reads.findParcel('70000002')]).toEqual([null, null])
    expect(await storedNumber(path, 'select count(*) from audit')).toBe(0)
    expect(await storedNumber(path, 'select count(*) from parcel')).toBe(1)
  })

  test('a parcel that is still polled stays, however old its last entry is', async () => {
    const { writes, report, passDays, reads, now } = await openAgingStore(engine)
    await report('70000001')
    await report('70000002')
    await writes.unwatch({ identifier: '70000002' })
    await report('70000003')
    await writes.watch({ identifier: '70000001', nowMs: now() })
    await passDays(12)
    expect(await reads.findParcel('70000001')).not.toBeNull()
    expect(await reads.findParcel('70000002')).toBeNull()
  })

  test('the feed is pruned by age, but not beyond what an endpoint still has to queue', async () => {
    const { writes, report, passDays, reads, last, pass, prune } = await openAgingStore(engine)
    for (const id of ['70000001', '70000002', '70000003']) await report(id)
    const { last: end } = await reads.readFeed({ after: 0, limit: 1 })
    await passDays(6)
    await addEndpoint(writes, NOON, { from: 2 })
    await report('70000004')
    pass(2 * HOUR_MS)
    await passDays(1)
    expect((await reads.readFeed({ after: end, limit: 10 })).prunedTo).toBe(1)
    expect((await last()).held).toMatchObject({ feed: 2, pushBytes: 3 })
    while (!(await writes.replayFeed({ limit: 100, nowMs: NOON })).isDone);
    pass(2 * HOUR_MS)
    await prune()
    expect((await reads.readFeed({ after: end, limit: 10 })).prunedTo).toBe(3)
    // The endpoint's deliveries are queued now. They keep the pushes whose bytes they send.
    expect((await last()).held).toMatchObject({ overdue: 3, pushBytes: 2 })
  })

  test('composed events are removed with the feed unless a delivery still names them', async () => {
    const { path, writes, poll, report, passDays } = await openAgingStore(engine)
    const { take } = await addEndpoint(writes, NOON)
    await addEndpoint(writes, NOON, { name: 'off', enabled: false, backfill: true })
    await poll({ asked: '70000001', trackingIds: ['70000001'] })
    await take()
    await passDays(6)
    await report('70000002')
    await take()
    const composed = () => storedNumber(path, 'select count(*) from composed_event')
    const before = await composed()
    expect(before).toBeGreaterThan(0)
    await passDays(2)
    expect(await composed()).toBe(before)
    await passDays(17)
    expect(await composed()).toBe(0)
  })

  test('if the hourly work ends a job’s pass, the job is done and counts all that the pass removed', async () => {
    const { writes, reads, pushBytes, bodyOf, pass, passDays, prune, last, now } = await openAgingStore(engine)
    await passDays(1)
    for (let at = 0; at < 250; at++) await pushBytes(bodyOf(String(71_000_000 + at)))
    pass(7 * DAY_MS)
    await writes.adjustRetention({ ...NOTHING, rawMs: 6 * DAY_MS })
    await writes.startJob({ task: { kind: 'retention' }, by: 'admin', nowMs: now() })
    await writes.workOnJobs({ limit: 100, nowMs: now() })
    await prune()
    const { startedAtMs } = await last()
    pass(1)
    while (!(await writes.workOnJobs({ limit: 100, nowMs: now() })).isDone);
    expect((await reads.listJobs({ before: null, limit: 1 })).map(({ state, done }) => ({ state, done }))).toEqual([
      { state: 'done', done: 250 },
    ])
    expect(await last()).toMatchObject({ startedAtMs, removed: { pushBytes: 250 } })
  })

  test('after the clock jumped ahead only an operator’s order removes data, not the hourly pass', async () => {
    const { writes, report, passDays, pass, prune, reads, last, now, setClock } = await openAgingStore(engine)
    await report('70000001')
    await passDays(1)
    const rightMs = now()
    setClock(rightMs + 300 * DAY_MS)
    await prune()
    expect(await last()).toMatchObject({ isClockDoubted: true, removed: {} })
    expect((await reads.findParcel('70000001'))?.entries).toHaveLength(1)
    setClock(rightMs + HOUR_MS)
    await prune()
    expect(await last()).toMatchObject({ isClockDoubted: false })
    pass(7 * DAY_MS)
    await writes.startJob({ task: { kind: 'retention' }, by: 'admin', nowMs: now() })
    while (!(await writes.workOnJobs({ limit: 100, nowMs: now() })).isDone);
    expect(await last()).toMatchObject({ isClockDoubted: false, removed: { pushBytes: 1 } })
  })
})
