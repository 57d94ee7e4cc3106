import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noAudience } from '../../../../src/core/domain/history/audience.ts'
import { createEntryCount } from '../../../../src/core/domain/history/batch-needs.ts'
import { deriveEntries } from '../../../../src/core/domain/history/history.ts'
import { type KeptSighting, sightingsOf, uniteSightings } from '../../../../src/core/domain/history/sightings.ts'
import { observations, type Seen } from '../../../support/history/observations.ts'
import { casesOf } from '../../../support/runner/long-form.ts'

const RUNS = casesOf(2000, 200)

const keptOf = ({ observation }: Seen): readonly KeptSighting[] =>
  sightingsOf(observation).map((listed) => ({ ...listed, sequence: 1, learntAtMs: null, audience: noAudience }))

test('the minimum count after some sightings never exceeds the minimum count after all of them', () => {
  let exact = 0
  fc.assert(
    fc.property(observations, (all) => {
      const count = createEntryCount()
      const { length } = deriveEntries(uniteSightings(all.map(keptOf)).kept)
      for (const one of all) {
        for (const { sighting } of keptOf(one)) count.add(sighting)
        expect(count.atLeast()).toBeLessThanOrEqual(length)
      }
      if (count.atLeast() === length) exact++
    }),
    { numRuns: RUNS, seed: 20261124 },
  )
  expect(exact).toBeGreaterThan(RUNS / 4)
})
