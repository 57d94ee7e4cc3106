import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noAudience } from '../../../src/domain/history/audience.ts'
import { deriveEntries, type Entry } from '../../../src/domain/history/history.ts'
import type { ParcelRecord } from '../../../src/domain/history/parcel-record.ts'
import { type KeptSighting, mergeSightings, sightingsOf } from '../../../src/domain/history/sightings.ts'
import { groupOf, joinedKey, keyOf, keysFit } from '../../../src/domain/history/status-entry.ts'
import { answers, type Matcher, recordAll } from '../../support/model.ts'
import { type Observation, observations, rearranged } from '../../support/observations.ts'

/** `npm run faults` takes its time. */
const RUNS = process.env.RELAY_FAULTS === 'long' ? 3000 : 1000

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

/** Whether some sighting fits more than one entry of its group: where a matcher has to choose. */
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

test('P8: gives the same bytes whatever the order, the duplicates and the split over push and poll', () => {
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

test('catches a matcher that decides by order of arrival', () => {
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

test('catches a poll that counts as asked when it arrived', () => {
  let arrivals = 0
  const arrivalIsAsking: Matcher = (sightings) => deriveEntries(sightings.map((kept) => ({ ...kept, askedAtMs: ++arrivals })))
  expect(lawHolds(arrivalIsAsking).failed).toBe(true)
})

function askedLater(observation: Observation, byMs: number): Observation {
  return observation.kind === 'push' ? observation : { ...observation, askedAtMs: observation.askedAtMs + byMs }
}

test('keeps equal sightings once without changing an answer', () => {
  const report = fc.check(
    fc.property(pairs, ([, seen]) => {
      // No two are asked for at once: of those the greater stays, as a whole, where every copy would be weighed on its own.
      const all = seen.map((one, at) => ({ ...one, observation: askedLater(one.observation, at) }))
      const everyOne = all.flatMap(({ observation }, at) =>
        sightingsOf(observation).map((listed) => ({
          ...listed,
          listing: listed.listing === 0 ? 0 : at + 1,
          sequence: 0,
          audience: noAudience,
        })),
      )
      const values = (entries: readonly Entry[]) =>
        entries.map((entry) => JSON.stringify({ ...entry, members: [], founding: 0, sequence: 0 })).sort()
      const { kept } = mergeSightings(
        [],
        all.flatMap(({ observation }) => sightingsOf(observation)),
        () => 0,
      )
      expect(values(deriveEntries(kept))).toEqual(values(deriveEntries(everyOne)))
    }),
    { numRuns: RUNS, seed: 7, endOnFailure: true },
  )
  expect(report.failed, fc.defaultReportMessage(report)).toBe(false)
})
