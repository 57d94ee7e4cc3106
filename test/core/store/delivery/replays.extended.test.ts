import { describe, expect, test } from 'vitest'
import type { DeliverySelection, EndedReplay, ReplayCursor } from '../../../../src/core/domain/delivery/delivery-list.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { writeDeliveries } from '../../../support/delivery/many-deliveries.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { storedRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const [DELIVERED, DEAD, CANCELLED, DUE] = [2, 3, 4, 1]

async function openDeliveries(engine: Engine) {
  const store = await openStore(NOON, engine)
  const [one, other] = [await addEndpoint(store.writes, NOON), await addEndpoint(store.writes, NOON, { name: 'other' })]
  const statesOf = async (endpointId: string) => {
    const counted = 'select state, count(*) as count from delivery where endpoint_id = ? group by 1'
    const rows = await storedRows<{ state: number; count: number }>(store.path, counted, Number(endpointId))
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
  }
  const select = (change: Partial<DeliverySelection> = {}): EndedReplay => ({
    selection: {
      endpointId: one.id,
      states: ['dead', 'cancelled'],
      fromSequence: 0,
      fromMs: 0,
      deliveryId: null,
      sequence: null,
      parcelId: null,
      ...change,
    },
    to: one.id,
    untilMs: store.now(),
  })
  const replayAll = async (task: EndedReplay, limit: number) => {
    const counts: number[] = []
    let place: ReplayCursor | null = null
    do {
      const after: ReplayCursor | null = place
      const stretch = await store.writes.replayDeliveries({ ...task, after, limit, nowMs: store.now() })
      counts.push(stretch?.count ?? -1)
      place = stretch?.next ?? null
    } while (place !== null)
    return counts
  }
  return { ...store, id: one.id, otherId: other.id, statesOf, select, replayAll }
}

describe.each(engines)('replays on $name', (engine) => {
  test('a replay finds ended deliveries in any state by sequence or time, each once', async () => {
    const { path, reads, id, statesOf, select, replayAll } = await openDeliveries(engine)
    await writeDeliveries(path, { endpointId: id, count: 400, state: DELIVERED })
    await writeDeliveries(path, { endpointId: id, count: 30, state: DEAD, from: 401 })
    await writeDeliveries(path, { endpointId: id, count: 20, state: CANCELLED, from: 431 })
    const count = async (task: EndedReplay, limit = 10_001) => (await reads.countReplayable({ ...task, limit })).count
    const queries = [
      [select(), 50],
      [select({ fromSequence: 421 }), 30],
      [select({ fromMs: 441 }), 10],
      [select({ states: ['delivered'], fromSequence: 201 }), 200],
      [select({ states: ['delivered'], fromMs: 301 }), 100],
      [select({ states: ['delivered'], sequence: 7 }), 1],
      [select({ states: ['delivered'], sequence: 7, fromMs: 8 }), 0],
      [select({ states: ['delivered'], parcelId: 1_000_000 }), 4],
      [select({ states: ['delivered'], parcelId: 1_000_000, fromMs: 3 }), 2],
    ] as const
    for (const [task, expected] of queries) expect(await count(task)).toBe(expected)
    expect(await count(select({ states: ['delivered'] }), 100)).toBe(100)
    expect(await replayAll(select({ states: ['delivered'], fromMs: 301 }), 40)).toEqual([40, 40, 20])
    expect(await replayAll(select(), 40)).toEqual([40, 10])
    expect(await statesOf(id)).toMatchObject({ 2: 300 })
    expect(await count(select())).toBe(0)
  })

  test('a replay by time does not select the deliveries that it has queued itself', async () => {
    const { path, id, select, writes, now } = await openDeliveries(engine)
    await writeDeliveries(path, { endpointId: id, count: 4, state: DELIVERED, eventsEach: 1 })
    const task = select({ states: ['delivered'], fromMs: 1 })
    let place: ReplayCursor | null = null
    for (let round = 0; round < 4; round++) {
      const stretch = await writes.replayDeliveries({ ...task, after: place, limit: 1, nowMs: now() })
      expect(stretch).toMatchObject({ count: 1 })
      place = stretch?.next ?? null
      const { claimed } = await writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 9, nowMs: now() })
      const result = { kind: 'accepted', status: 200, durationMs: 1, answerStart: new Uint8Array() } as const
      const settled = claimed.map(({ body: _body, previousSequence: _previous, ...one }) => ({ ...one, result, atMs: now(), random: 0.5 }))
      await writes.dispatchRound({ settled, inFlight: {}, allowance: {}, claimsMax: 0, nowMs: now() })
    }
    expect(await writes.replayDeliveries({ ...task, after: place, limit: 1, nowMs: now() })).toEqual({ count: 0, next: null })
  })

  test('a job resumes after a restart, is listed with its progress, and can be cancelled', async () => {
    const { path, writes, reads, id, statesOf, select, now } = await openDeliveries(engine)
    await writeDeliveries(path, { endpointId: id, count: 100, state: DEAD })
    const job = await writes.startJob({ task: { kind: 'replay', ...select() }, by: 'admin', nowMs: now() })
    expect(job).toMatchObject({ jobId: 1, state: 'waiting', by: 'admin', done: 0 })
    await writes.startJob({ task: { kind: 'replay', ...select() }, by: 'admin', nowMs: now() })
    expect(await writes.workOnJobs({ limit: 30, nowMs: now() })).toMatchObject({ isDone: false })
    expect(await reads.findJob(1)).toMatchObject({ state: 'running', done: 30, startedAtMs: now(), endedAtMs: null })
    expect(await statesOf(id)).toMatchObject({ 3: 70 })
    // A restart loses the relay's memory, but a job is stored.
    expect(await writes.workOnJobs({ limit: 30, nowMs: now() })).toMatchObject({ isDone: false })
    expect(await writes.cancelJob({ jobId: 1, nowMs: now() })).toMatchObject({ state: 'cancelled', done: 60, endedAtMs: now() })
    expect(await writes.workOnJobs({ limit: 100, nowMs: now() })).toMatchObject({ isDone: true })
    expect(await reads.listJobs({ before: null, limit: 10 })).toMatchObject([
      { jobId: 2, state: 'done', done: 40 },
      { jobId: 1, state: 'cancelled', done: 60 },
    ])
    expect(await writes.cancelJob({ jobId: 2, nowMs: now() })).toMatchObject({ state: 'done' })
    expect(await writes.cancelJob({ jobId: 3, nowMs: now() })).toBeNull()
  })

  test('a job whose endpoint is removed fails, and at most a hundred jobs may wait', async () => {
    const { path, writes, reads, id, select, now } = await openDeliveries(engine)
    await writeDeliveries(path, { endpointId: id, count: 100, state: DEAD })
    const task = { kind: 'replay', ...select() } as const
    for (let nth = 0; nth < 100; nth++) expect(await writes.startJob({ task, by: 'admin', nowMs: now() })).not.toBeNull()
    expect(await writes.startJob({ task, by: 'admin', nowMs: now() })).toBeNull()
    await writes.removeEndpoint({ id, nowMs: now() })
    await writes.workOnJobs({ limit: 30, nowMs: now() })
    expect(await reads.findJob(1)).toMatchObject({
      state: 'failed',
      failure: 'The endpoint was removed, or it is catching up and gets these events from the feed.',
    })
  })

  test('a removed endpoint’s deliveries count as cancelled at once; the store marks them later', async () => {
    const { path, writes, reads, id, otherId, statesOf, select, now } = await openDeliveries(engine)
    await writeDeliveries(path, { endpointId: id, count: 100, state: DUE })
    await writes.removeEndpoint({ id, nowMs: now() })
    const look = async () => {
      const list = (state: 'cancelled' | 'queued' | 'retrying' | 'held') =>
        reads.listDeliveries({ endpointId: id, state, parcelId: null, before: null, limit: 500 })
      const { deliveries } = await list('cancelled')
      expect(deliveries).toHaveLength(100)
      for (const delivery of deliveries) {
        expect(delivery).toMatchObject({ state: 'cancelled', reason: 'endpoint_removed', settledAtMs: now(), nextAttemptAtMs: null })
      }
      for (const state of ['queued', 'retrying', 'held'] as const) expect((await list(state)).deliveries).toEqual([])
      expect(await reads.countReplayable({ ...select(), limit: 10_001 })).toMatchObject({ count: 100 })
      expect(await reads.countReplayable({ ...select({ fromSequence: 91 }), limit: 10_001 })).toMatchObject({ count: 10 })
      expect(await reads.findDelivery(1)).toMatchObject({ delivery: { state: 'cancelled' } })
      const { claimed } = await writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 9, nowMs: now() })
      expect(claimed.filter(({ endpointId }) => endpointId === id)).toEqual([])
    }
    await look()
    const { next: _next, ...sent } =
      (await writes.replayDeliveries({ ...select({ deliveryId: 1 }), to: otherId, after: null, limit: 1, nowMs: now() })) ?? {}
    expect(sent).toEqual({ count: 1 })
    expect(await writes.cancelRemoved({ limit: 30 })).toMatchObject({ isDone: false })
    expect(await statesOf(id)).toMatchObject({ 4: 30 })
    await look()
  })
})
