import { describe, expect, test } from 'vitest'
import { NO_CONTEXT } from '../../../../src/core/domain/history/order-context.ts'
import { KEPT_FOREVER } from '../../../../src/upkeep/retention/retention.rules.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { openAgingStore } from '../../../support/store/aging-store.ts'
import { engines } from '../../../support/store/engines.ts'
import { storedNumber, storedRows } from '../../../support/store/stored-rows.ts'

const DELIVERIES = { endpointId: null, parcelId: null, state: null, before: null, limit: 100 } as const
const NOTHING = KEPT_FOREVER

describe.each(engines)('retention on $name', (engine) => {
  test('S20: undelivered events stay for `held`, and are then cancelled with one operator event', async () => {
    const { writes, report, passDays, reads, told, last, path, parcelIdOf } = await openAgingStore(engine)
    const { id } = await addEndpoint(writes, NOON, { enabled: false })
    await report('70000001')
    await report('70000001', { status: 'DeliveryStarted' })
    await passDays(2)
    await report('70000001', { status: 'DeliverySucceeded' })
    await writes.unwatch({ identifier: '70000001' })
    await report('70000009')
    await passDays(18)
    const parcelId = await parcelIdOf('70000001')
    const waiting = async () => (await reads.listDeliveries({ ...DELIVERIES, parcelId })).deliveries.map(({ state }) => state)
    expect(await waiting()).toEqual(['held', 'held', 'held'])
    expect((await last()).held).toEqual({ overdue: 4, pushBytes: 4, parcels: 1 })
    expect(await storedNumber(path, 'select count(*) from inbox where body is not null')).toBe(4)
    expect(await told()).toEqual([])
    await passDays(1)
    expect(await waiting()).toEqual(['held', 'cancelled', 'cancelled'])
    expect(await told()).toMatchObject([{ event: 'retention_gave_up', detail: { givenUp: { overdue: 2 }, endpoints: [id] } }])
    expect((await reads.listActions({ before: null, limit: 5 })).actions).toMatchObject([
      { action: 'retention.gave_up', by: { kind: 'relay' }, detail: { givenUp: { overdue: 2 } } },
    ])
    // The next delivery of the parcel has become the first.
    expect(await storedRows(path, 'select state from delivery where state < 2 and parcel_id = ?', parcelId)).toEqual([{ state: 1 }])
    await passDays(1)
    expect((await told()).length).toBe(1)
  })

  test('a parcel older than history is removed with all its rows, and the feed says so', async () => {
    const { path, writes, report, passDays, reads, events, parcelIdOf } = await openAgingStore(engine)
    const { take } = await addEndpoint(writes, NOON)
    await report('70000001', { status: 'DeliverySucceeded' })
    await take()
    await writes.saveOrder({ identifier: '70000001', context: { ...NO_CONTEXT, reference: 'ORDER-1' }, nowMs: NOON })
    const gone = await parcelIdOf('70000001')
    await passDays(5)
    await report('70000002')
    await take()
    await writes.unwatch({ identifier: '70000001' })
    // Each pass counts from the times noted by earlier passes, so the removal may come one interval late.
    await passDays(6)
    expect(await reads.findParcel('70000001')).not.toBeNull()
    await passDays(1)
    expect(await reads.findParcel('70000001')).toBeNull()
    expect((await events()).at(-1)).toMatchObject({ kind: 'retired', parcelId: gone })
    for (const table of ['identifier', 'sighting', 'answer', 'inbox', 'delivery', 'language_asked', 'order_context', 'overwritten'])
      expect([table, await storedNumber(path, `select count(*) from ${table} where parcel_id = ?`, gone)]).toEqual([table, 0])
    expect(await reads.findParcel('70000002')).not.toBeNull()
    await report('70000001')
    expect(await parcelIdOf('70000001')).not.toBe(gone)
    expect((await reads.findParcel('70000001'))?.entries).toHaveLength(1)
  })

  test('S20: a pass works in batches, resumes after an interruption, and still counts as one pass', async () => {
    const { writes, pushBytes, bodyOf, pass, passDays, prune, last, now } = await openAgingStore(engine)
    await passDays(1)
    for (let at = 0; at < 350; at++) await pushBytes(bodyOf(String(71_000_000 + at)))
    pass(7 * DAY_MS)
    await writes.adjustRetention({ ...NOTHING, rawMs: 6 * DAY_MS })
    const job = await writes.startJob({ task: { kind: 'retention' }, by: 'admin', nowMs: now() })
    const first = await writes.workOnJobs({ limit: 100, nowMs: now() })
    expect(first).toMatchObject({ hasWorked: true, isDone: false })
    await writes.cancelJob({ jobId: job?.jobId ?? 0, nowMs: now() })
    expect(await prune()).toBeGreaterThan(1)
    expect((await last()).removed.pushBytes).toBe(350)
  })
})
