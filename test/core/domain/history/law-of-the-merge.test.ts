import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noAudience } from '../../../../src/core/domain/history/audience.ts'
import { deriveEntries, type Entry } from '../../../../src/core/domain/history/history.ts'
import { groupOf, joinedKey, keyOf, keysFit } from '../../../../src/core/domain/history/observation.ts'
import { type KeptSighting, mergeSightings, sightingsOf } from '../../../../src/core/domain/history/sightings.ts'
import { answers, type Matcher, recordAll } from '../../../support/history/model.ts'
import {
  copiesAroundAnother,
  everyOrder,
  type Observation,
  observations,
  rearranged,
  type Seen,
} from '../../../support/history/observations.ts'
import type { ParcelRecord } from '../../../support/history/parcel-record.ts'
import { casesOf, LONG } from '../../../support/runner/long-form.ts'

/** `npm run faults` runs more cases. */
const RUNS = LONG ? 10_000 : casesOf(1000, 150)

const pairs = observations.chain((all) => fc.tuple(fc.constant(all), rearranged(all)))

function lawHolds(derive: Matcher, seen: (parcels: readonly ParcelRecord[]) => void = () => undefined) {
  return fc.check(
    fc.property(pairs, ([all, again]) => {
      const parcels = recordAll(all)
      seen(parcels)
      expect(answers(recordAll(again), derive)).toEqual(answers(parcels, derive))
    }),
    { numRuns: RUNS, seed: 20261121, endOnFailure: true },
  )
}

/** Whether some sighting fits several entries of its group, so that a matcher has to choose. */
function isAmbiguous(parcel: ParcelRecord): boolean {
  const entries = deriveEntries(parcel.sightings)
  return parcel.sightings.some((kept) => {
    const fitting = entries.filter(
      (entry) =>
        entry.members.some((one) => groupOf(one.sighting) === groupOf(kept.sighting)) &&
        keysFit(entry.members.map((one) => keyOf(one.sighting)).reduce(joinedKey), keyOf(kept.sighting)),
    )
    return fitting.length > 1
  })
}

test('P8: the merge gives the same bytes for any order, repetition, and mix of push and poll', () => {
  let ambiguous = 0
  let joined = 0
  const report = lawHolds(deriveEntries, (parcels) => {
    if (parcels.some(isAmbiguous)) ambiguous++
    if (parcels.some((parcel) => parcel.identifiers.length > 3)) joined++
  })
  expect(report.failed, fc.defaultReportMessage(report)).toBe(false)
  expect(ambiguous / report.numRuns).toBeGreaterThan(0.3)
  expect(joined / report.numRuns).toBeGreaterThan(0.1)
})

test('the check of P8 fails for a matcher that decides by the order of arrival', () => {
  const byArrival: Matcher = (sightings) => {
    const clusters: KeptSighting[][] = []
    for (const kept of sightings) {
      const home = clusters.find((cluster) =>
        cluster.every(
          (one) =>
            groupOf(one.sighting) === groupOf(kept.sighting) &&
            (one.listing === 0 || one.listing !== kept.listing) &&
            keysFit(keyOf(one.sighting), keyOf(kept.sighting)),
        ),
      )
      if (home === undefined) clusters.push([kept])
      else home.push(kept)
    }
    return clusters.flatMap((cluster) => deriveEntries(cluster.map((kept) => ({ ...kept, listing: 0 }))))
  }
  expect(lawHolds(byArrival).failed).toBe(true)
})

test('the check of P8 fails if the order of arrival replaces the request times of polls', () => {
  let arrivals = 0
  const arrivalIsAsking: Matcher = (sightings) => deriveEntries(sightings.map((kept) => ({ ...kept, askedAtMs: ++arrivals })))
  expect(lawHolds(arrivalIsAsking).failed).toBe(true)
})

function askedLater(observation: Observation, byMs: number): Observation {
  return observation.kind === 'push' ? observation : { ...observation, askedAtMs: observation.askedAtMs + byMs }
}

/** Makes all request times different. At equal times the relay compares whole listings, and `entriesOfAll` would compare single sightings. */
function neverAtOnce(all: readonly Seen[]): readonly Seen[] {
  return all.map((one, at) => ({ ...one, observation: askedLater(one.observation, at) }))
}

/** Numbers the listing of an observation. No other observation gets this number. If all else is equal, the lower number joins first. */
type Numbering = (digest: number, at: number) => number

// `at` distinguishes copies with the same digest. A digest has 48 bits, so a `number` is exact for up to 32 observations.
const byDigest: Numbering = (listing, at) => listing * 32 + at
const byArrival: Numbering = (_, at) => at + 1

/** The entries if every copy of a listing is kept. */
function entriesOfAll(all: readonly Seen[], numberOf: Numbering): readonly Entry[] {
  const copies = all.flatMap(({ observation }, at) =>
    sightingsOf(observation).map((listed) => {
      const listing = listed.listing === 0 ? 0 : numberOf(listed.listing, at)
      return { ...listed, listing, sequence: 0, learntAtMs: null, audience: noAudience }
    }),
  )
  return deriveEntries(copies)
}

function entriesOfKept(all: readonly Seen[]): readonly Entry[] {
  const listed = all.flatMap(({ observation }) => sightingsOf(observation))
  return deriveEntries(mergeSightings([], listed, () => 0, null).kept)
}

function valuesOf(entries: readonly Entry[]): readonly string[] {
  return entries.map((entry) => JSON.stringify({ ...entry, members: [] })).sort()
}

test('keeping only one of several equal listings changes no entry', () => {
  const report = fc.check(
    fc.property(pairs, ([, seen]) => {
      const all = neverAtOnce(seen)
      expect(all.length).toBeLessThanOrEqual(32)
      expect(valuesOf(entriesOfKept(all))).toEqual(valuesOf(entriesOfAll(all, byDigest)))
    }),
    { numRuns: RUNS, seed: 7, endOnFailure: true },
  )
  expect(report.failed, fc.defaultReportMessage(report)).toBe(false)
})

test('2.3: copies of a listing join one after another, whatever arrived between them', () => {
  const texts = (entries: readonly Entry[]) => entries.map((entry) => [entry.texts.en?.detailed, entry.texts.sv?.detailed])
  const kept = [
    ['Arrived', 'Ankommen'],
    [undefined, 'Framme'],
  ]
  const moved = [
    ['Arrived', 'Framme'],
    [undefined, 'Ankommen'],
  ]
  for (const order of everyOrder(copiesAroundAnother)) {
    expect(texts(entriesOfKept(order))).toEqual(kept)
    expect(texts(entriesOfAll(order, byDigest))).toEqual(kept)
  }
  expect(texts(entriesOfAll(copiesAroundAnother, byArrival))).toEqual(moved)
})
