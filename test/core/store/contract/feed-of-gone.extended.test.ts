import { describe, expect, test } from 'vitest'
import { encodeFeedItem } from '../../../../src/core/domain/delivery/feed-entry.ts'
import { KEPT_FOREVER } from '../../../../src/upkeep/retention/retention.rules.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { openAgingStore } from '../../../support/store/aging-store.ts'
import { engines } from '../../../support/store/engines.ts'
import { openErasures } from '../../../support/store/erasures.ts'

const shown = (items: Parameters<typeof encodeFeedItem>[0][]) => items.map((item): unknown => JSON.parse(encodeFeedItem(item)))
const at = (minute: number) => new Date(NOON + minute * 60_000).toISOString()

describe.each(engines)('joins of parcels that are gone, on $name', (engine) => {
  test('a reader that missed a join learns of each parcel that was erased with it', async () => {
    const { push, reads, parcelIdOf, forget } = await openErasures(engine)
    await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
    await push({ trackingIds: ['GONE0002'], eventTime: at(2) })
    await push({ trackingIds: ['GONE0003'], eventTime: at(3) })
    const ids = new Set(await Promise.all(['GONE0001', 'GONE0002', 'GONE0003'].map(parcelIdOf)))
    const { next: after } = await reads.readFeed({ after: 0, limit: 100 })
    await push({ trackingIds: ['GONE0001', 'GONE0002'], eventTime: at(4) })
    await push({ trackingIds: ['GONE0002', 'GONE0003'], eventTime: at(5) })
    await forget('GONE0003')
    const events = shown([...(await reads.readFeed({ after, limit: 100 })).items])
    expect(events).toEqual(Array.from(ids, () => ({ sequence: expect.any(Number), kind: 'erased', parcel: { id: expect.any(String) } })))
    expect(new Set(events.map((event) => Number(Object(event).parcel.id)))).toEqual(ids)
  })

  test('a reader that missed a join learns of each parcel that was retired with it', async () => {
    const { report, reads, parcelIdOf, passDays, writes } = await openAgingStore(engine, { ...KEPT_FOREVER, historyMs: 10 * DAY_MS })
    await report('70000001')
    await report('70000002')
    const ids = new Set(await Promise.all(['70000001', '70000002'].map(parcelIdOf)))
    const { next: after } = await reads.readFeed({ after: 0, limit: 100 })
    await report('70000001', { trackingIds: ['70000001', '70000002'], status: 'Delivered' })
    await writes.unwatch({ identifier: '70000001' })
    await passDays(12)
    const events = shown([...(await reads.readFeed({ after, limit: 100 })).items])
    expect(events.map((event) => Object(event).kind)).toEqual(['retired', 'retired'])
    expect(new Set(events.map((event) => Number(Object(event).parcel.id)))).toEqual(ids)
  })
})
