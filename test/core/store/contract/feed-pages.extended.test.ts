import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { encodeFeedItem } from '../../../../src/core/domain/delivery/feed-entry.ts'
import { isoText } from '../../../../src/core/store/history/sighting-rows.ts'
import { engines, newPlace } from '../../../support/store/engines.ts'
import { writeSeededStore } from '../../../support/store/seeded-store.ts'

describe.each(engines)('pages of the feed, on $name', (engine) => {
  test('parcels that are loaded together are shown as each alone: after pushes, polls, joins, an erasure and an order', async () => {
    const place = await newPlace(engine)
    await writeSeededStore(place, engine)
    const reads = engine.openReadStore(place)
    onTestFinished(() => reads.close())
    const { items } = await reads.readFeed({ after: 0, limit: 10_000 })
    const whole = items.map(encodeFeedItem)
    const single: string[] = []
    for (let after = 0, ended = false; !ended; ) {
      const page = await reads.readFeed({ after, limit: 1 })
      single.push(...page.items.map(encodeFeedItem))
      ended = page.ended
      after = page.next
    }
    expect(single).toEqual(whole)
    const kinds = new Set(items.map(({ kind }) => kind))
    for (const kind of ['entry', 'update', 'join'] as const) expect(kinds).toContain(kind)
    expect(whole.some((json) => json.includes('"reference":"ORDER-1"'))).toBe(true)
    for (const item of items) {
      if (!('parcel' in item)) continue
      const { parcel } = item
      const inspected = await reads.inspectParcel(parcel.identifiers[0] ?? '')
      expect({ entries: parcel.entries, type: parcel.distributionType }).toEqual({
        entries: inspected?.entries,
        type: inspected?.distributionType,
      })
    }
  })
})

test('a time is written as the platform writes it', () => {
  fc.assert(
    fc.property(fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }), (atMs) => {
      expect(isoText(atMs)).toBe(new Date(atMs).toISOString())
    }),
  )
})
