import { describe, expect, test } from 'vitest'
import { KEPT_FOREVER } from '../../../../src/upkeep/retention/retention.rules.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { aPoll } from '../../../support/history/builders.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { openAgingStore } from '../../../support/store/aging-store.ts'
import { copyPlace, engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'

const DELIVERIES = { endpointId: null, parcelId: null, state: null, before: null, limit: 100 } as const
const YEAR_MS = 365 * DAY_MS
/** Only what `held` gives up is removed. */
const HELD = { ...KEPT_FOREVER, rawMs: DAY_MS, deliveriesMs: 400 * DAY_MS, heldMs: 20 * DAY_MS }

describe.each(engines)('a clock that jumps, on $name', (engine) => {
  test('P13: a clock a year ahead for a while ends no polling', async () => {
    const { poll, record, pass, setClock, now, reads, writes } = await openStore(NOON, engine)
    const asked = { asked: '1001', trackingIds: ['1001'], statuses: [{ eventTimestamp: new Date(NOON - HOUR_MS).toISOString() }] }
    const stopped = async () => (await reads.inspectParcel('1001'))?.state.stopped ?? null
    await poll(asked)
    pass(HOUR_MS)
    setClock(now() + YEAR_MS)
    await record({ kind: 'poll', observation: aPoll({ ...asked, askedAtMs: now() }), watch: false })
    expect(await stopped()).toBeNull()
    expect(await writes.lookAtClock({ carrierAheadMs: null, machineAheadMs: null })).toMatchObject({ because: 'jumped' })
    setClock(now() - YEAR_MS)
    expect(await writes.lookAtClock({ carrierAheadMs: null, machineAheadMs: null })).toBeNull()
    expect(await writes.lookAtClock({ carrierAheadMs: -YEAR_MS, machineAheadMs: null })).toMatchObject({ because: 'carrier' })
  })

  test('P13: a clock that is put back takes back that a parcel became stale', async () => {
    const { poll, record, pass, setClock, now, reads, writes } = await openStore(NOON, engine)
    const asked = (id: string) => ({ asked: id, trackingIds: [id], statuses: [{ eventTimestamp: new Date(NOON - HOUR_MS).toISOString() }] })
    const stateOf = async (id: string) => (await reads.inspectParcel(id))?.state
    for (const id of ['1001', '1002']) await poll(asked(id))
    await writes.unwatch({ identifier: '1002' })
    const rightMs = pass(HOUR_MS)
    setClock(rightMs + YEAR_MS)
    // After a day the clock is trusted, though it is wrong.
    await writes.lookAtClock({ carrierAheadMs: null, machineAheadMs: null })
    pass(DAY_MS + HOUR_MS)
    await record({ kind: 'poll', observation: aPoll({ ...asked('1001'), askedAtMs: now() }), watch: false })
    expect(await stateOf('1001')).toMatchObject({ stopped: 'stale', nextPollAtMs: null })
    setClock(rightMs + DAY_MS + HOUR_MS)
    await writes.shiftSchedule({ byMs: YEAR_MS, sinceMs: now(), nowMs: now(), afterParcelId: 0, limit: 500 })
    expect(await stateOf('1001')).toMatchObject({ stopped: null, nextPollAtMs: expect.any(Number) })
    expect((await stateOf('1001'))?.nextPollAtMs).toBeLessThan(now() + DAY_MS)
    expect(await stateOf('1002')).toMatchObject({ stopped: 'unwatched', nextPollAtMs: null })
  })

  test('a jump in either direction gives up nothing: only lived time ages what waits', async () => {
    const { writes, report, pushBytes, prune, pass, setClock, now, reads, inboxIds } = await openAgingStore(engine, HELD)
    await addEndpoint(writes, NOON, { enabled: false })
    await prune()
    const waiting = async () => (await reads.listDeliveries(DELIVERIES)).deliveries.filter(({ state }) => state === 'held').length
    setClock(NOON - 500 * DAY_MS)
    await report('70000001')
    await pushBytes(Buffer.from('not an event'))
    const [, open = 0] = await inboxIds()
    pass(DAY_MS)
    await prune()
    setClock(NOON + DAY_MS)
    for (let day = 0; day < 3; day++) {
      pass(DAY_MS)
      await prune()
    }
    setClock(now() + 900 * DAY_MS)
    for (let day = 0; day < 16; day++) {
      pass(DAY_MS)
      await prune()
    }
    expect(await waiting()).toBe(1)
    expect(await reads.inspectPush(open)).toMatchObject({ state: 'quarantined' })
    for (let day = 0; day < 3; day++) {
      pass(DAY_MS)
      await prune()
    }
    expect(await waiting()).toBe(0)
    expect(await reads.inspectPush(open)).toMatchObject({ state: 'dismissed', bodyBytes: null })
  })

  test('time in which the relay was stopped ages nothing that waits', async () => {
    const first = await openAgingStore(engine, HELD)
    await addEndpoint(first.writes, NOON, { enabled: false })
    await first.prune()
    await first.report('70000001')
    await first.passDays(1)
    const again = await openStore(first.now() + 300 * DAY_MS, engine, await copyPlace(engine, first.path))
    await again.writes.adjustRetention(HELD)
    for (let day = 0; day < 18; day++) {
      again.pass(DAY_MS)
      while (!(await again.writes.prune({ nowMs: again.now() })).isDone);
    }
    expect((await again.reads.listDeliveries(DELIVERIES)).deliveries).toMatchObject([{ state: 'held' }])
  })

  test('a delivery that is replayed is as old as its replay', async () => {
    const { writes, report, passDays, reads, now } = await openAgingStore(engine, HELD)
    const { id } = await addEndpoint(writes, NOON, { enabled: false })
    await report('70000001')
    await passDays(10)
    await report('70000002')
    await passDays(12)
    const stateOf = async (parcelId: number) => (await reads.listDeliveries({ ...DELIVERIES, parcelId })).deliveries[0]?.state
    const parcelId = (await reads.findParcel('70000001'))?.parcelId ?? 0
    expect(await stateOf(parcelId)).toBe('cancelled')
    const selection = {
      endpointId: id,
      states: ['cancelled'],
      fromSequence: 0,
      fromMs: 0,
      deliveryId: null,
      sequence: null,
      parcelId: null,
    } as const
    await writes.replayDeliveries({ selection, to: id, after: null, limit: 10, nowMs: now(), untilMs: now() })
    await passDays(15)
    expect(await stateOf(parcelId)).toBe('held')
    await passDays(7)
    expect(await stateOf(parcelId)).toBe('cancelled')
  })

  test('7.4: a push keeps its bytes while a cancelled delivery may send them again', async () => {
    const { writes, report, passDays, reads, now, inboxIds } = await openAgingStore(engine, { ...HELD, deliveriesMs: 10 * DAY_MS })
    const { id } = await addEndpoint(writes, NOON, { enabled: false })
    await report('70000001')
    await report('70000009')
    const [inboxId = 0] = await inboxIds()
    await passDays(3)
    await writes.removeEndpoint({ id, nowMs: now() })
    while (!(await writes.cancelRemoved({ limit: 100 })).isDone);
    await passDays(9)
    expect(await reads.inspectPush(inboxId)).toMatchObject({ bodyBytes: expect.any(Number) })
    await passDays(3)
    expect(await reads.inspectPush(inboxId)).toMatchObject({ bodyBytes: null })
  })

  test('no pass runs while the clock contradicts the carrier’s, not even on order', async () => {
    const { writes, report, passDays, reads, last, pass, prune, now } = await openAgingStore(engine, HELD)
    await report('70000001')
    await passDays(1)
    await writes.lookAtClock({ carrierAheadMs: -300 * DAY_MS, machineAheadMs: null })
    pass(DAY_MS)
    await prune()
    expect(await last()).toMatchObject({ isClockDoubted: true, removed: {} })
    await writes.startJob({ task: { kind: 'retention' }, by: 'admin', nowMs: now() })
    while (!(await writes.workOnJobs({ limit: 100, nowMs: now() })).isDone);
    expect(await reads.listJobs({ before: null, limit: 1 })).toMatchObject([
      { state: 'failed', failure: expect.stringContaining('contradict') },
    ])
    await writes.lookAtClock({ carrierAheadMs: 0, machineAheadMs: null })
    pass(HOUR_MS)
    await prune()
    expect(await last()).toMatchObject({ isClockDoubted: false, removed: { pushBytes: 1 } })
  })
})
