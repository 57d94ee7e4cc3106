import fc from 'fast-check'
import { describe, test } from 'vitest'
import { openWalk, type Step } from '../../support/insight/news-walk.ts'
import { runsOn } from '../../support/runner/long-form.ts'
import { engines } from '../../support/store/engines.ts'

const number = fc.noBias(fc.nat({ max: 9999 }))
const walk = fc.array(fc.tuple(number, number, number), { minLength: 60, maxLength: 160, size: 'max' })

describe.each(engines)('walks over what endpoints are sent of watchdogs, on $name', (engine) => {
  test('9.7: each endpoint gets what it asks for, in order per parcel, and nothing after an erasure', async () => {
    await fc.assert(
      fc.asyncProperty(walk, async (steps: readonly Step[]) => {
        const world = await openWalk(engine)
        for (const step of steps) await world.take(step)
        await world.end()
      }),
      { endOnFailure: true, numRuns: runsOn(engine, 48, 8) },
    )
  })
})
