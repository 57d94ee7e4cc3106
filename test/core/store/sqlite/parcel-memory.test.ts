import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ParcelState } from '../../../../src/core/domain/history/parcel-state.ts'
import { createParcelMemory } from '../../../../src/core/store/sqlite/known-parcels.ts'

const instant = fc.oneof(fc.integer(), fc.maxSafeInteger())
const instantOrNone = fc.option(instant)

const FIELDS = {
  parcelId: fc.integer({ min: 1, max: 12 }),
  watchedAtMs: instantOrNone,
  firstPushedAtMs: instantOrNone,
  activatedAtMs: instant,
  entryCount: fc.nat(),
  latest: fc.option(fc.record({ status: fc.string(), atMs: instant }, { noNullPrototype: true })),
  lastSeenAtMs: instantOrNone,
  checkedAtMs: instantOrNone,
  failures: fc.nat(),
  nextPollAtMs: instantOrNone,
  stopped: fc.constantFrom(null, 'delivered', 'stale', 'unknown', 'unwatched'),
  full: fc.boolean(),
}
const parcelState: fc.Arbitrary<ParcelState> = fc.record(FIELDS, { noNullPrototype: true })

test('a parcel is returned as last stored, or not at all', () => {
  const max = 5
  fc.assert(
    fc.property(fc.array(parcelState, { maxLength: 60 }), (states) => {
      const memory = createParcelMemory(max)
      const last = new Map<number, ParcelState>()
      for (const state of states) {
        memory.set(state)
        last.set(state.parcelId, state)
        expect(memory.get(state.parcelId)).toStrictEqual(state)
      }
      const remembered = [...last.values()].filter(({ parcelId }) => memory.get(parcelId) !== null)
      expect(remembered).toHaveLength(Math.min(max, last.size))
      for (const state of remembered) expect(memory.get(state.parcelId)).toStrictEqual(state)
    }),
  )
})

const STATE: ParcelState = {
  parcelId: 1,
  watchedAtMs: null,
  firstPushedAtMs: null,
  activatedAtMs: 0,
  entryCount: 0,
  latest: null,
  lastSeenAtMs: null,
  checkedAtMs: null,
  failures: 0,
  nextPollAtMs: null,
  stopped: null,
  full: false,
}

test('the least recently used parcel is dropped for a new one', () => {
  const memory = createParcelMemory(2)
  for (const parcelId of [1, 2]) memory.set({ ...STATE, parcelId })
  memory.get(1)
  memory.set({ ...STATE, parcelId: 3 })
  expect([1, 2, 3].map((parcelId) => memory.get(parcelId)?.parcelId ?? null)).toEqual([1, null, 3])
})

test('deleting a parcel frees its memory, and no other parcel is lost', () => {
  const memory = createParcelMemory(3)
  for (const parcelId of [1, 2, 3]) memory.set({ ...STATE, parcelId, entryCount: parcelId })
  memory.delete(2)
  memory.delete(7)
  memory.set({ ...STATE, parcelId: 4, entryCount: 4 })
  expect([1, 2, 3, 4].map((parcelId) => memory.get(parcelId)?.entryCount ?? null)).toEqual([1, null, 3, 4])
})

test('after it is cleared, the memory holds nothing and has its full size again', () => {
  const memory = createParcelMemory(2)
  for (const parcelId of [1, 2]) memory.set({ ...STATE, parcelId })
  memory.clear()
  expect([1, 2].map((parcelId) => memory.get(parcelId))).toEqual([null, null])
  for (const parcelId of [3, 4]) memory.set({ ...STATE, parcelId })
  expect([3, 4].map((parcelId) => memory.get(parcelId)?.parcelId)).toEqual([3, 4])
})
