import { describe, expect, test } from 'vitest'
import { type EndpointSettings, noFilters } from '../../../src/domain/delivery/endpoint.ts'
import { boundsOf, selectMissing } from '../../../src/domain/delivery/missing.ts'
import { createMissingSummary } from '../../../src/flow/delivery/missing-summary.ts'
import { createResends } from '../../../src/flow/delivery/resends.ts'
import type { Engine } from '../../../src/store/contract.ts'
import { manageDeliveriesAt } from '../../support/delivery/manage-deliveries-at.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { retention } from '../../support/history/policy.ts'
import { OPERATOR } from '../../support/relay/operator.ts'
import { NOON } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { openStore } from '../../support/store/write-side.ts'

const HOUR = 3_600_000
const EARLY = ['2026-03-01T06:00:00Z', '2026-03-01T07:00:00Z', '2026-03-01T08:00:00Z']
const LATE = '2026-03-01T11:00:00Z'

async function openMissing(engine: Engine, beforeBatch: () => Promise<void> = async () => {}) {
  const store = await openStore(NOON, engine)
  const { writes, reads, push, poll, now } = store
  const resends = createResends()
  const manage = manageDeliveriesAt({
    write: writes,
    reads,
    clock: { now, monotonic: now },
    inTurn: async (work) => {
      await beforeBatch()
      return await work()
    },
    retention: () => retention,
    resends,
  })
  const left = new AbortController().signal
  const everything = { parcel: null, since: null, until: null, sequence: null, cursor: null, limit: 100 }
  return {
    ...store,
    add: (name: string, settings: Partial<EndpointSettings> & { readonly from?: number } = {}) =>
      addEndpoint(writes, NOON, { name, ...settings }),
    turn: (id: string, backfill: boolean) => writes.changeEndpoint({ id, change: { backfill }, key: null, nowMs: now() }),
    /** Makes the relay know a parcel by a push, and then learn of earlier entries by a poll. */
    async learnLate(parcel = '1001', times: readonly string[] = EARLY) {
      await push({ trackingIds: [parcel], eventTime: LATE, status: 'DeliveryStarted' })
      // The carrier lists the newest first.
      const statuses = times.toReversed().map((eventTimestamp) => ({ eventTimestamp, status: 'TerminalArrived' }))
      await poll({ asked: parcel, trackingIds: [parcel], statuses: [{ eventTimestamp: LATE, status: 'DeliveryStarted' }, ...statuses] })
    },
    summary: createMissingSummary({
      reads,
      resends,
      retention: () => retention,
      clock: { now, monotonic: now },
      yieldToIo: async () => {},
    }),
    replay: (id: string, order: object = {}) => manage.replayMany(id, { missing: true, ...order }, { by: OPERATOR, left }),
    list: async (id: string, query: Partial<Parameters<typeof manage.listMissing>[1]> = {}) =>
      (await manage.listMissing(id, { ...everything, ...query })).events.map(({ entry }) => entry.eventTimestamp),
  }
}

const timesIn = (taken: readonly { readonly body: Uint8Array | null }[]) =>
  taken.map(({ body }) => /"eventTime":"([^".Z]+)/.exec(String(body))?.[1]?.concat('Z') ?? '')

describe.each(engines)('events that an endpoint never received on $name', (engine) => {
  test('6.6: a resend sends the backfill that an endpoint missed, once and in the parcel’s order', async () => {
    const { add, learnLate, replay, list } = await openMissing(engine)
    const [off, on] = [await add('off'), await add('on', { backfill: true })]
    await learnLate()
    expect(timesIn(await off.take())).toEqual([LATE])
    expect(timesIn(await on.take())).toEqual([LATE, ...EARLY])
    expect(await list(off.id)).toEqual(EARLY)
    expect(await list(on.id)).toEqual([])
    expect(await replay(off.id, { dryRun: true })).toMatchObject({ kind: 'counted', count: 3, parcels: 1, oldestAtMs: NOON, more: false })
    expect(await replay(on.id)).toMatchObject({ kind: 'replayed', count: 0 })
    expect(await replay(off.id)).toEqual({ kind: 'replayed', count: 3 })
    expect(await list(off.id)).toEqual([])
    expect(await replay(off.id)).toMatchObject({ kind: 'replayed', count: 0 })
    expect(timesIn(await off.take())).toEqual(EARLY)
  })

  test('6.6: only events since an endpoint’s start that pass its filters count as missing', async () => {
    const { add, learnLate, list } = await openMissing(engine)
    const picky = await add('picky', { filters: { ...noFilters, status: ['DeliverySucceeded'] } })
    const plain = await add('plain')
    await learnLate()
    const later = await add('later')
    await learnLate('2002', EARLY.slice(1))
    expect(await list(picky.id)).toEqual([])
    expect(await list(plain.id)).toHaveLength(5)
    expect(await list(later.id)).toEqual(EARLY.slice(1))
  })

  test('an endpoint misses only the backfill that came while its backfill was turned off', async () => {
    const { add, learnLate, list, turn, replay } = await openMissing(engine)
    const { id, take } = await add('shop')
    const [first = '', second = '', third = ''] = EARLY
    await learnLate('1001', [first])
    await turn(id, true)
    await learnLate('2002', [second])
    await turn(id, false)
    await learnLate('3003', [third])
    await turn(id, true)
    expect(await list(id)).toEqual([first, third])
    expect(await replay(id)).toEqual({ kind: 'replayed', count: 2 })
    expect(timesIn(await take()).toSorted()).toEqual([first, second, third, LATE, LATE, LATE])
  })

  test('6.6: a push of an entry that was sent as missing is not sent again, even after a join', async () => {
    const { add, learnLate, replay, push, poll } = await openMissing(engine)
    const [shop, other] = [await add('shop'), await add('other')]
    await learnLate()
    await learnLate('2002', EARLY.slice(1))
    expect(await replay(shop.id)).toEqual({ kind: 'replayed', count: 5 })
    expect([await shop.take(), await other.take()].map(({ length }) => length)).toEqual([7, 2])
    await poll({ asked: '1001', trackingIds: ['1001', '2002'], statuses: [{ eventTimestamp: LATE, status: 'DeliveryStarted' }] })
    await push({ trackingIds: ['2002'], eventTime: EARLY[2] ?? '', status: 'TerminalArrived' })
    expect(timesIn(await shop.take())).toEqual([])
    expect(timesIn(await other.take())).toEqual([EARLY[2]])
  })

  test('an endpoint that received an entry by a later push does not miss the entry', async () => {
    const { add, learnLate, list, push } = await openMissing(engine)
    const { id } = await add('shop')
    await learnLate()
    await push({ trackingIds: ['1001'], eventTime: EARLY[1] ?? '', status: 'TerminalArrived' })
    expect(await list(id)).toEqual([EARLY[0], EARLY[2]])
  })

  test('missing events go before the deliveries of their parcel that still wait', async () => {
    const { add, learnLate, push, replay } = await openMissing(engine)
    const { id, take } = await add('shop')
    await learnLate()
    expect(timesIn(await take())).toEqual([LATE])
    await push({ trackingIds: ['1001'], eventTime: '2026-03-01T11:30:00Z', status: 'DeliverySucceeded' })
    await replay(id)
    expect(timesIn(await take())).toEqual([...EARLY, '2026-03-01T11:30:00Z'])
  })

  test('a resend can be limited to a parcel, a sequence or a time', async () => {
    const { add, learnLate, list, replay, pass, now } = await openMissing(engine)
    const { id, take } = await add('shop')
    await learnLate('1001', EARLY.slice(0, 1))
    const between = pass(HOUR)
    await learnLate('2002', EARLY.slice(1, 2))
    pass(HOUR)
    await learnLate('3003', EARLY.slice(2))
    expect(await list(id, { parcel: '2002' })).toEqual(EARLY.slice(1, 2))
    expect(await list(id, { since: { atMs: between } })).toEqual(EARLY.slice(1))
    expect(await list(id, { since: { atMs: between }, until: { atMs: now() } })).toEqual(EARLY.slice(1, 2))
    expect(await replay(id, { parcel: '2002' })).toEqual({ kind: 'replayed', count: 1 })
    expect(await replay(id, { parcel: '2002' })).toMatchObject({ kind: 'replayed', count: 0 })
    expect(await replay(id, { until: new Date(between).toISOString() })).toEqual({ kind: 'replayed', count: 1 })
    const [last] = (await take()).map(({ sequence }) => sequence).toSorted((a, b) => b - a)
    expect(await replay(id, { sequence: last ?? 0 })).toMatchObject({ kind: 'replayed', count: 0 })
    expect(await replay(id, { since: last ?? 0 })).toEqual({ kind: 'replayed', count: 1 })
    expect(await list(id)).toEqual([])
  })

  test('events recorded before the oldest stored delivery do not count as missing', async () => {
    const { add, learnLate, list, replay, writes, pass } = await openMissing(engine)
    const { id, take } = await add('shop')
    await learnLate('1001', EARLY.slice(0, 1))
    expect(await replay(id)).toEqual({ kind: 'replayed', count: 1 })
    expect(await take()).toHaveLength(2)
    await learnLate('2002', EARLY.slice(1))
    pass(retention.deliveriesMs + 2 * HOUR)
    for (let isDone = false; !isDone; ) ({ isDone } = await writes.prune({ nowMs: pass(1) }))
    expect(await list(id)).toEqual([])
    expect(await replay(id)).toMatchObject({ kind: 'replayed', count: 0 })
  })

  test('the events of an erased parcel do not count as missing', async () => {
    const { add, learnLate, list, replay, writes, now } = await openMissing(engine)
    const { id } = await add('shop')
    await learnLate()
    await learnLate('2002', EARLY.slice(1))
    await writes.useTombstoneKey(Buffer.alloc(32))
    await writes.eraseParcels({ identifiers: ['1001'], nowMs: now(), dryRun: false })
    expect(await list(id)).toEqual(EARLY.slice(1))
    expect(await replay(id)).toEqual({ kind: 'replayed', count: 2 })
  })

  test('a job sends missing events in batches until none is left', async () => {
    const { add, learnLate, list, turn, writes, reads, now } = await openMissing(engine)
    const { id, take } = await add('shop')
    await learnLate('1001')
    await turn(id, true)
    await turn(id, false)
    await learnLate('2002', EARLY.slice(1))
    await take()
    const missing = selectMissing({ ...boundsOf(null, null), sequence: null }, null)
    await writes.startJob({ task: { kind: 'replay', missing, to: id }, by: 'admin', nowMs: now() })
    for (let isDone = false; !isDone; ) ({ isDone } = await writes.workOnJobs({ limit: 2, nowMs: now() }))
    expect(await reads.findJob(1)).toMatchObject({ state: 'done', done: 5 })
    expect(await list(id)).toEqual([])
    expect(timesIn(await take()).toSorted()).toEqual([...EARLY, ...EARLY.slice(1)].toSorted())
  })

  test('the summary names the resends under way, with the number of events they have queued', async () => {
    const seen: unknown[] = []
    const store = await openMissing(engine, async () => void seen.push(await store.summary.recent()))
    const { add, learnLate, replay, summary, writes, now, reads } = store
    const { id } = await add('shop')
    await learnLate()
    await replay(id)
    expect(seen).toMatchObject([{ endpoints: [{ count: 3 }], resends: [{ endpointId: id, name: 'shop', jobId: null, queued: 0 }] }])
    expect(await summary.recent()).toMatchObject({ endpoints: [], resends: [] })
    await learnLate('2002')
    const missing = selectMissing({ ...boundsOf(null, null), sequence: null }, null)
    await writes.startJob({ task: { kind: 'replay', missing, to: id }, by: 'admin', nowMs: now() })
    let done = 0
    while (done === 0) {
      await writes.workOnJobs({ limit: 2, nowMs: now() })
      done = (await reads.findJob(1))?.done ?? 0
    }
    expect(await summary.recent()).toMatchObject({
      endpoints: [{ count: 3 - done }],
      resends: [{ endpointId: id, jobId: 1, queued: done }],
    })
  })

  test('after a resend, the summary no longer shows the earlier count', async () => {
    const { add, learnLate, replay, summary } = await openMissing(engine)
    const { id } = await add('shop')
    const times = Array.from({ length: 210 }, (_, nth) => new Date(NOON - 8 * HOUR + nth * 1000).toISOString().replace('.000', ''))
    await learnLate('1001', times)
    expect(await summary.recent()).toMatchObject({ endpoints: [{ count: 210 }] })
    await replay(id)
    expect(await summary.recent()).toMatchObject({ endpoints: [] })
  })

  test('the summary counts, for each endpoint, the events of the last day that it never received', async () => {
    const { add, learnLate, replay, summary, push, pass } = await openMissing(engine)
    await add('all', { backfill: true })
    const [shop, lab] = [await add('shop'), await add('lab', { filters: { ...noFilters, status: ['TerminalArrived'] } })]
    await add('picky', { filters: { ...noFilters, status: ['DeliverySucceeded'] } })
    expect(await summary.recent()).toEqual({ sinceMs: NOON - 24 * HOUR, endpoints: [], more: false, resends: [] })
    await learnLate()
    pass(HOUR)
    await learnLate('2002', EARLY.slice(1))
    const at = ({ id: endpointId }: { readonly id: string }, name: string, count: number) => ({ endpointId, name, count })
    expect(await summary.recent()).toMatchObject({ endpoints: [at(shop, 'shop', 5), at(lab, 'lab', 5)], more: false })
    await replay(shop.id, { parcel: '2002' })
    await push({ trackingIds: ['1001'], eventTime: EARLY[0] ?? '', status: 'TerminalArrived' })
    expect(await summary.recent()).toMatchObject({ endpoints: [at(lab, 'lab', 4), at(shop, 'shop', 2)] })
    expect(await summary.ofParcel('2002')).toEqual([at(lab, 'lab', 2)])
    expect(await summary.ofParcel('9999')).toEqual([])
    pass(23.5 * HOUR)
    expect(await summary.recent()).toMatchObject({ endpoints: [at(lab, 'lab', 2)] })
  })
})
