import { describe, expect, test } from 'vitest'
import type { DeliveryCursor, DeliveryQuery } from '../../../../src/core/domain/delivery/delivery-list.ts'
import { EVENT_READ_MAX } from '../../../../src/core/domain/delivery/delivery-list.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { openDeliveryWorld } from '../../../support/delivery/delivery-world.ts'
import { writeDeliveries } from '../../../support/delivery/many-deliveries.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'

const [DELIVERED, DEAD] = [2, 3]

async function openLists(engine: Engine, statusOf: () => number = () => 200) {
  const world = await openDeliveryWorld(engine, NOON, { statusOf })
  const page = async (query: Partial<DeliveryQuery> = {}) =>
    await world.reads.listDeliveries({ endpointId: null, parcelId: null, state: null, before: null, limit: 100, ...query })
  const listed = async (query: Partial<DeliveryQuery>) => {
    const times: number[] = []
    let before: DeliveryCursor | null = null
    let pages = 0
    do {
      const { deliveries, next }: Awaited<ReturnType<typeof page>> = await page({ ...query, before })
      times.push(...deliveries.map(({ queuedAtMs }) => queuedAtMs))
      before = next
      pages++
    } while (before !== null)
    return { times, pages }
  }
  return { ...world, page, listed }
}

describe.each(engines)('a list of deliveries on $name', (engine) => {
  test('for a period has the deliveries that were queued in it, each on one page, latest first', async () => {
    const { path, id, listed, writes, now } = await openLists(engine)
    await writeDeliveries(path, { endpointId: id, count: 50, state: DELIVERED })
    await changeStoredRows(path, 'update delivery set queued_at_ms = 20 where id between 18 and 24')
    const expected = [29, 28, 27, 26, 25, ...Array.from({ length: 7 }, () => 20), 17, 16, 15]
    expect((await listed({ queued: { fromMs: 15, toMs: 30 }, limit: 4 })).times).toEqual(expected)
    const [, from, to] = [await listed({}), 45, Number.MAX_SAFE_INTEGER]
    expect((await listed({ queued: { fromMs: from, toMs: to }, limit: 2 })).times).toEqual([50, 49, 48, 47, 46, 45])
    // A replay queues a delivery again under its old id, with a new time.
    const selection = { endpointId: id, states: ['delivered'], fromSequence: 0, fromMs: 0, deliveryId: null, parcelId: null } as const
    const task = { selection: { ...selection, sequence: 16 }, to: id, untilMs: now() - 1 }
    await writes().replayDeliveries({ ...task, after: null, limit: 9, nowMs: now() })
    expect((await listed({ queued: { fromMs: 15, toMs: 18 } })).times).toEqual([17, 15])
    expect((await listed({ queued: { fromMs: NOON, toMs: to } })).times).toEqual([NOON])
  })

  test('needs few pages to skip the gap that a restore leaves between ids', async () => {
    const { path, id, listed } = await openLists(engine)
    await writeDeliveries(path, { endpointId: id, count: 20, state: DELIVERED })
    await changeStoredRows(path, 'update delivery set id = id + 3000000000 where queued_at_ms > 10')
    const { times, pages } = await listed({})
    expect(times).toEqual(Array.from({ length: 20 }, (_, nth) => 20 - nth))
    expect(pages).toBeLessThan(4)
  })

  test('for a long period and a rare state searches in parts and finds all deliveries', async () => {
    const { path, id, listed } = await openLists(engine)
    await writeDeliveries(path, { endpointId: id, count: 60_000, state: DELIVERED })
    await changeStoredRows(
      path,
      `update delivery set state = ${DEAD} where id in (select id from delivery where queued_at_ms in (7, 59999))`,
    )
    const found = await listed({ state: 'dead', queued: { fromMs: 1, toMs: NOON }, limit: 2 })
    expect(found).toEqual({ times: [59_999, 7], pages: 2 })
    expect((await listed({ state: 'dead', endpointId: id, queued: { fromMs: 1, toMs: 100 } })).times).toEqual([7])
  })

  test('shows each event and its last attempt, but not a large event', async () => {
    let status = 503
    const { push, run, page, reads } = await openLists(engine, () => status)
    await push({ trackingIds: ['1001'], status: 'Created', detailedStatus: 'CreatedT1' })
    await run(NOON + 100)
    const refused = { event: { status: 'Created', detailedStatus: 'CreatedT1' }, lastAttempt: { status: 503, reason: null } }
    expect((await page()).deliveries).toMatchObject([refused])
    status = 200
    await push({ trackingIds: ['2002'], texts: { en: 'x'.repeat(EVENT_READ_MAX) } })
    expect((await page()).deliveries).toMatchObject([{ event: null, lastAttempt: null }, refused])
    await run(NOON + 1000)
    const [large] = (await page()).deliveries
    expect(large).toMatchObject({ event: null, lastAttempt: { status: 200 }, state: 'delivered' })
    expect(await reads.findDelivery(large?.deliveryId ?? 0)).toMatchObject({ delivery: { event: { status: 'TerminalArrived' } } })
  })

  test('shows for a failing endpoint that no delivery is tried before the next probe', async () => {
    const { push, run, page, endpoint } = await openLists(engine, () => 503)
    for (const at of [1, 2, 3, 4, 5, 6]) await push({ trackingIds: [`100${at}`] })
    await push({ trackingIds: ['1001'], eventTime: '2026-03-01T11:00:00Z' })
    await run(NOON + 40_000)
    const probeAtMs = (await endpoint()).health.probing?.atMs
    expect(probeAtMs).toBeGreaterThan(NOON + 40_000)
    const waiting = (await page()).deliveries.map(({ nextAttemptAtMs }) => nextAttemptAtMs)
    expect(waiting).toEqual([null, ...Array.from({ length: 6 }, () => probeAtMs)])
  })

  test('counts the deliveries that a replay would queue, their parcels, and the oldest', async () => {
    const { path, id, reads } = await openLists(engine)
    await writeDeliveries(path, { endpointId: id, count: 30, state: DEAD, from: 101 })
    const selection = { endpointId: id, states: ['dead', 'cancelled'], deliveryId: null, sequence: null, parcelId: null } as const
    const count = (fromSequence: number, limit = 10_001) =>
      reads.countReplayable({ selection: { ...selection, fromSequence, fromMs: 0 }, untilMs: NOON, limit })
    expect(await count(0)).toEqual({ count: 30, parcels: 8, oldestAtMs: 101 })
    expect(await count(121)).toEqual({ count: 10, parcels: 3, oldestAtMs: 121 })
    expect(await count(0, 5)).toEqual({ count: 5, parcels: 2, oldestAtMs: 101 })
    expect(await count(500)).toEqual({ count: 0, parcels: 0, oldestAtMs: null })
  })
})
