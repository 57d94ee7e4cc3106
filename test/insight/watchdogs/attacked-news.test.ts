import { describe, expect, test } from 'vitest'
import { ENDPOINT_EVENTS, noFilters } from '../../../src/core/domain/delivery/endpoint-state.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { aRule } from '../../support/insight/a-rule.ts'
import { openWatched } from '../../support/insight/open-watched.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { storedNumber } from '../../support/store/stored-rows.ts'

const WATCHED = ['Created', 'Ingested', 'Sorted']
const RULE = aRule({ when: { status: WATCHED } })

describe.each(engines)('what endpoints are sent of watchdogs, under attack, on $name', (engine) => {
  test.each(WATCHED)('9.7: of entries of one instant the latest is the one that is served first, here %s', async (first) => {
    const { poll, look, pass, reads, writes } = await openWatched(engine, [RULE])
    const shop = await addEndpoint(writes, NOON, { name: 'shop', events: ['parcel.stalled'] })
    const filters = { ...noFilters, status: [first] }
    const filtered = await addEndpoint(writes, NOON, { name: 'filtered', events: ['parcel.stalled'], filters })
    const order = [first, ...WATCHED.filter((one) => one !== first)]
    const statuses = order.map((status) => ({ status, detailedStatus: status, eventTimestamp: '2026-03-01T12:00:00Z' }))
    await poll({ asked: '1001', statuses })
    pass(49 * HOUR_MS)
    await look()
    expect((await reads.findParcel('1001'))?.entries.map(({ status }) => status)).toEqual(order)
    const late = await addEndpoint(writes, NOON, { name: 'late', events: ['parcel.stalled'], from: 0 })
    while (!(await writes.replayFeed({ limit: 10, nowMs: NOON })).isDone);
    for (const { take } of [shop, filtered, late])
      expect((await take()).map(({ body }) => JSON.parse(String(body)).parcel.latest.status)).toEqual([first])
  })

  test('an erasure takes the bodies of which retention has removed the deliveries, too', async () => {
    const { scan, look, pass, now, forget, writes, path } = await openWatched(engine)
    const shop = await addEndpoint(writes, NOON, { events: ENDPOINT_EVENTS })
    await scan('Ingested', NOON, { trackingIds: ['GONE0001'] })
    await scan('Ingested', NOON, { trackingIds: ['GONE0002'] })
    pass(49 * HOUR_MS)
    await look()
    expect(await shop.take()).toHaveLength(4)
    // The breaches are equal, so a join keeps one.
    await scan('Created', NOON - HOUR_MS, { trackingIds: ['GONE0001', 'GONE0002'] })
    await shop.take()
    pass(31 * DAY_MS)
    while (!(await writes.prune({ nowMs: now() })).isDone);
    expect(await storedNumber(path, 'select count(*) from delivery')).toBe(0)
    await forget('GONE0001')
    expect(await storedNumber(path, 'select count(*) from composed_event')).toBe(0)
  })
})
