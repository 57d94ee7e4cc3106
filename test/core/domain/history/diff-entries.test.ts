import { expect, test } from 'vitest'
import { deriveEntries, diffEntries } from '../../../../src/core/domain/history/history.ts'
import { aPoll, aPush } from '../../../support/history/builders.ts'
import type { Observation } from '../../../support/history/observations.ts'
import { emptyParcel, observe } from '../../../support/history/parcel-record.ts'

const sightingsOf = (all: readonly Observation[]) => all.reduce(observe, emptyParcel).sightings
const kindsOf = (before: readonly Observation[], added: Observation) =>
  diffEntries(deriveEntries(sightingsOf(before)), deriveEntries(sightingsOf([...before, added]))).map((change) => change.kind)

test('an entry that was not reported before is new', () => {
  expect(kindsOf([], aPush())).toEqual(['entry'])
  expect(kindsOf([aPush()], aPush({ eventTime: '2026-03-01T11:00:00.000Z' }))).toEqual(['entry'])
})

test('an entry that is reported again with the same words has not changed', () => {
  expect(kindsOf([aPoll({ askedAtMs: 1 })], aPoll({ askedAtMs: 2 }))).toEqual([])
})

test('an entry that is served differently than before is updated', () => {
  expect(kindsOf([aPush({ texts: { sv: 'Framme' } })], aPoll({ text: 'Arrived' }))).toEqual(['update'])
})

test('2.8: entries that turn out to be one are reported as united', () => {
  const apart = [
    aPush({ eventTime: '2026-03-01T10:00:00.100Z', location: null }),
    aPush({ eventTime: '2026-03-01T10:00:00.000Z', location: 'Lund' }),
    aPush({ eventTime: '2026-03-01T10:00:00.000Z', location: 'Umeå' }),
  ]
  expect(deriveEntries(sightingsOf(apart))).toHaveLength(2)
  // The first push names no place, and this push in Umeå has the same time. So the first push moves from Lund to Umeå.
  expect(kindsOf(apart, aPush({ eventTime: '2026-03-01T10:00:00.100Z', location: 'Umeå' }))).toContain('united')
})

test('an entry whose first sighting turns out to belong to another entry is reported as split', () => {
  const seen = [
    aPush({ eventTime: '2026-03-01T10:00:00Z', location: null }),
    aPush({ eventTime: '2026-03-01T10:00:00.100Z', location: 'Lund' }),
    aPush({ eventTime: '2026-03-01T10:00:00.050Z', location: null }),
  ]
  const before = deriveEntries(sightingsOf(seen))
  expect(before.map((entry) => entry.sequence)).toEqual([0, 2])
  // This push is matched before the earlier push in Lund, so it gets the sighting that has neither a place nor milliseconds.
  const after = deriveEntries(sightingsOf([...seen, aPush({ eventTime: '2026-03-01T10:00:00.050Z', location: 'Lund' })]))
  const audience = diffEntries(before, after).map(({ kind, entry }) => [kind, entry.sequence])
  expect(audience).toEqual([
    ['united', 0],
    ['split', 1],
  ])
})
