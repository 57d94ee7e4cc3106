import { describe, expect, test } from 'vitest'
import type { OperatorEvent } from '../../../../src/core/domain/delivery/operator-event.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { HOUR_MS, MINUTE_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { incomingPush, openStore } from '../../../support/store/write-side.ts'

const ANY = { event: null, fromMs: null, toMs: null, before: null, limit: 100 } as const

const refused: OperatorEvent = { event: 'credentials_refused' }
const lossy: OperatorEvent = { event: 'pushes_lossy', lastPushAt: null }

async function open(engine: (typeof engines)[number]) {
  const store = await openStore(NOON, engine)
  const told = async () => (await store.reads.listOperatorEvents(ANY)).map(({ event, detail }) => ({ event, ...detail })).reverse()
  return { ...store, told }
}

const task = {
  kind: 'replay',
  selection: { endpointId: '1', states: ['dead'], fromSequence: 0, fromMs: 0, deliveryId: null, sequence: null, parcelId: null },
  to: '1',
  untilMs: NOON,
} as const

describe.each(engines)('operator events on $name', (engine) => {
  test('that were posted before they could be stored are listed, and not queued', async () => {
    const { writes, reads, told } = await open(engine)
    await writes.syncEndpoints([], NOON, 'https://ops.example')
    const waiting = async () =>
      (await reads.listDeliveries({ endpointId: null, state: null, parcelId: null, before: null, limit: 10 })).deliveries.length
    const disk = { event: 'disk_full', freeBytes: 0, freeBytesMin: 9 } as const
    expect(await writes.beginTrouble({ subject: 'disk full', event: disk, nowMs: NOON, isPosted: true })).toBe(true)
    await writes.recordOperatorEvent(refused, NOON, { isPosted: true })
    await writes.endBackup({ jobId: null, name: 'nightly', nowMs: NOON, made: null, failure: 'no room', isPosted: true })
    expect([await told(), await waiting()]).toMatchObject([[disk, refused, { event: 'backup_failed', backup: 'nightly' }], 0])
    await writes.recordOperatorEvent(refused, NOON)
    expect(await waiting()).toBe(1)
  })

  test('are listed newest first, in pages, each once', async () => {
    const { writes, reads } = await open(engine)
    for (const minute of [0, 1, 1, 1, 2]) await writes.recordOperatorEvent(minute === 2 ? lossy : refused, NOON + minute * MINUTE_MS)
    const first = await reads.listOperatorEvents({ ...ANY, limit: 2 })
    const last = first.at(-1)
    const rest = await reads.listOperatorEvents({ ...ANY, before: { atMs: last?.atMs ?? 0, id: last?.id ?? 0 } })
    expect([...first, ...rest].map(({ atMs, event }) => [(atMs - NOON) / MINUTE_MS, event])).toEqual([
      [2, 'pushes_lossy'],
      [1, 'credentials_refused'],
      [1, 'credentials_refused'],
      [1, 'credentials_refused'],
      [0, 'credentials_refused'],
    ])
    expect(new Set([...first, ...rest].map(({ id }) => id)).size).toBe(5)
  })

  test('are found by name and time, and show their other fields', async () => {
    const { writes, reads } = await open(engine)
    for (const minute of [0, 1, 2, 3]) await writes.recordOperatorEvent(minute % 2 === 0 ? refused : lossy, NOON + minute * MINUTE_MS)
    const ofName = await reads.listOperatorEvents({ ...ANY, event: 'pushes_lossy' })
    expect(ofName.map(({ atMs, detail }) => [atMs, detail])).toEqual([
      [NOON + 3 * MINUTE_MS, { lastPushAt: null }],
      [NOON + MINUTE_MS, { lastPushAt: null }],
    ])
    const between = await reads.listOperatorEvents({ ...ANY, fromMs: NOON + MINUTE_MS, toMs: NOON + 3 * MINUTE_MS })
    expect(between.map(({ atMs }) => (atMs - NOON) / MINUTE_MS)).toEqual([2, 1])
    expect(await reads.listOperatorEvents({ ...ANY, event: 'pushes_lossy', toMs: NOON })).toEqual([])
  })

  test('are also sent if the config names an endpoint for them', async () => {
    const { writes, told } = await open(engine)
    await writes.syncEndpoints([], NOON, 'http://operator.internal/')
    await writes.recordOperatorEvent(refused, NOON)
    const { claimed } = await writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 10, nowMs: NOON })
    expect(claimed.map(({ body }) => JSON.parse(Buffer.from(body ?? '').toString()))).toEqual([
      { event: 'credentials_refused', at: new Date(NOON).toISOString() },
    ])
    expect(await told()).toEqual([refused])
  })

  test('a problem that several callers report at once causes one event, and so does its end', async () => {
    const { writes, told } = await open(engine)
    const five = Array.from({ length: 5 })
    const begun = await Promise.all(five.map(() => writes.beginTrouble({ subject: 'credentials', event: refused, nowMs: NOON })))
    expect(begun.filter(Boolean)).toHaveLength(1)
    const end = { subject: 'credentials', event: { event: 'credentials_accepted' }, nowMs: NOON + HOUR_MS } as const
    const ended = await Promise.all(five.map(() => writes.endTrouble(end)))
    expect(ended.filter(Boolean)).toHaveLength(1)
    expect(await told()).toEqual([refused, { event: 'credentials_accepted', since: new Date(NOON).toISOString() }])
    expect(await writes.beginTrouble({ subject: 'credentials', event: refused, nowMs: NOON })).toBe(true)
  })

  test('the beginning and the end of a trouble name the same time since which it lasts', async () => {
    const { writes, told } = await open(engine)
    const since = new Date(NOON - HOUR_MS).toISOString()
    const failing = { event: 'carrier_failing', reason: 'rejected', status: 403, since } as const
    await writes.beginTrouble({ subject: 'carrier', event: failing, nowMs: NOON })
    await writes.endTrouble({ subject: 'carrier', event: { event: 'carrier_recovered' }, nowMs: NOON + HOUR_MS })
    expect(await told()).toEqual([failing, { event: 'carrier_recovered', since }])
  })

  test('a quarantine reason causes an event at once, then each hour or when its count is tenfold', async () => {
    const { writes, record, pass, now, told } = await open(engine)
    const garbage = (nth: number) => incomingPush(Buffer.from(`not JSON ${nth}`), now())
    const since = (hours: number) => new Date(NOON + hours * HOUR_MS).toISOString()
    await record(garbage(1), garbage(2))
    expect(await writes.tellOperators({ nowMs: now() })).toBe(1)
    const [first] = await told()
    expect(first).toEqual({ event: 'pushes_quarantined', reason: expect.any(String), count: 2, since: since(0) })
    // A repeated push does not count as new.
    await record(garbage(2), garbage(3))
    await record(garbage(4))
    expect(await writes.tellOperators({ nowMs: now() })).toBe(0)
    pass(HOUR_MS)
    expect(await writes.tellOperators({ nowMs: now() })).toBe(1)
    pass(HOUR_MS)
    expect(await writes.tellOperators({ nowMs: now() })).toBe(0)
    await record(garbage(5))
    expect(await writes.tellOperators({ nowMs: now() })).toBe(1)
    await record(...Array.from({ length: 9 }, (_, nth) => garbage(6 + nth)))
    await writes.tellOperators({ nowMs: now() })
    const counted = (await told()).filter((event) => Reflect.get(event, 'event') === 'pushes_quarantined')
    expect(counted.map((event) => [Reflect.get(event, 'count'), Reflect.get(event, 'since')])).toEqual([
      [2, since(0)],
      [4, since(0)],
      [1, since(2)],
      [10, since(2)],
    ])
  })

  test('one event says that no push is understood, and another that most are understood again', async () => {
    const { writes, record, pass, now, told } = await open(engine)
    const garbage = (nth: number) => incomingPush(Buffer.from(`not JSON ${nth}`), now())
    const good = (nth: number) => incomingPush(pushBody({ trackingIds: [`6100000${nth}`] }), now())
    const names = async () => {
      await writes.tellOperators({ nowMs: now() })
      return (await told()).map((event) => Reflect.get(event, 'event'))
    }
    await record(...Array.from({ length: 9 }, (_, nth) => garbage(nth)))
    expect(await names()).toEqual(['pushes_quarantined'])
    pass(300)
    await record(garbage(9))
    expect(await names()).toEqual(['pushes_quarantined', 'pushes_not_understood'])
    expect((await told())[1]).toMatchObject({ reason: 'json_syntax', since: new Date(NOON).toISOString() })
    await record(garbage(10), good(1), good(2), good(3), good(4))
    expect(await names()).toHaveLength(2)
    await record(good(5))
    expect(await names()).toEqual(['pushes_quarantined', 'pushes_not_understood', 'pushes_understood'])
    // The end names the same instant as the beginning.
    expect((await told())[2]).toMatchObject({ since: new Date(NOON).toISOString() })
    await record(garbage(11))
    expect(await names()).toHaveLength(3)
  })

  test('a reprocessed push that stays in quarantine is not counted again', async () => {
    const { writes, record, now, inboxIds, told } = await open(engine)
    await record(incomingPush(Buffer.from('not JSON'), now()))
    for (const inboxId of await inboxIds()) await writes.reprocess({ inboxId, nowMs: now() })
    await writes.tellOperators({ nowMs: now() })
    expect(await told()).toMatchObject([{ count: 1 }])
  })

  test('the end of a job causes one event, however the job ends', async () => {
    const { writes, told } = await open(engine)
    const { id } = await addEndpoint(writes, NOON)
    await writes.startJob({ task: { ...task, to: id }, by: 'ann', nowMs: NOON })
    await writes.tellOperators({ nowMs: NOON })
    expect(await told()).toEqual([])
    await writes.workOnJobs({ limit: 10, nowMs: NOON + 1 })
    const gone = await writes.startJob({ task: { ...task, to: '1000' }, by: 'ann', nowMs: NOON })
    await writes.workOnJobs({ limit: 10, nowMs: NOON + 2 })
    const last = await writes.startJob({ task, by: 'ann', nowMs: NOON })
    await writes.cancelJob({ jobId: last?.jobId ?? 0, nowMs: NOON + 3 })
    const counts = await Promise.all([1, 2, 3].map(() => writes.tellOperators({ nowMs: NOON + 4 })))
    expect(counts.toSorted((a, b) => a - b)).toEqual([0, 0, 3])
    expect(await told()).toMatchObject([
      { event: 'job_ended', job: { kind: 'replay' }, state: 'done', done: 0, failure: null },
      {
        job: { id: String(gone?.jobId) },
        state: 'failed',
        failure: 'The endpoint was removed, or it is catching up and gets these events from the feed.',
      },
      { job: { id: String(last?.jobId) }, state: 'cancelled' },
    ])
  })
})
