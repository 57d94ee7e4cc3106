import { expect, test } from 'vitest'
import { createKnownCounts } from '../../../../src/console/parcels/parcel-queries.ts'

function countsOf(parcels: number) {
  let monotonicMs = 0
  let asked = 0
  const counts = createKnownCounts({
    reads: {
      counts: async () => ({ parcels: parcels + asked++, watched: 1, overdue: 0, unknown: 0, quarantined: 2 }),
      countQuarantined: async () => 7,
    },
    clock: { now: () => 0, monotonic: () => monotonicMs },
  })
  const pass = (ms: number) => {
    monotonicMs += ms
  }
  return { counts, pass }
}

test('a large store’s parcels are counted once a minute, and its quarantined pushes each time', async () => {
  const { counts, pass } = countsOf(500_000)
  expect(await counts()).toEqual({ parcels: 500_000, watched: 1, overdue: 0, unknown: 0, quarantined: 2 })
  pass(59_999)
  expect(await counts()).toEqual({ parcels: 500_000, watched: 1, overdue: 0, unknown: 0, quarantined: 7 })
  pass(1)
  expect(await counts()).toMatchObject({ parcels: 500_001 })
})

test('the parcels of a small store are counted each time', async () => {
  const { counts } = countsOf(3)
  expect([(await counts()).parcels, (await counts()).parcels]).toEqual([3, 4])
})
