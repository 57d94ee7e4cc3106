import { expect, test } from 'vitest'
import { SIX_WEEKS, YEAR } from './year/calendar.ts'
import { liveThroughYear } from './year/year.ts'

/** `RELAY_YEAR_SEED=7 npm run faults -- year` repeats a run. */
const SEED = Number(process.env.RELAY_YEAR_SEED ?? Date.now() % 1_000_000)

/** `RELAY_YEAR_SHORT=1` simulates only six weeks, with shorter retention periods. */
const LENGTHS = process.env.RELAY_YEAR_SHORT === undefined ? YEAR : SIX_WEEKS

test.each(['sqlite', 'postgres'] as const)(
  'a year on %s loses no event, keeps no erased word, and the store stops growing',
  async (engine) => {
    console.log(`seed ${SEED}`)
    const { violations, ...report } = await liveThroughYear({ engine, lengths: LENGTHS, seed: SEED })
    console.log(JSON.stringify(report, null, 2))
    expect(violations).toEqual([])
    expect(report.growth).toBeLessThanOrEqual(1.1)
  },
)
