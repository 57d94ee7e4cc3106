import { expect, test } from 'vitest'
import { SIX_WEEKS, YEAR } from './year/calendar.ts'
import { liveThroughYear } from './year/year.ts'

/** Repeats a run: `RELAY_YEAR_SEED=7 npm run faults -- year`. */
const SEED = Number(process.env.RELAY_YEAR_SEED ?? Date.now() % 1_000_000)

/** `RELAY_YEAR_SHORT=1` lives through six weeks only, with shorter periods of retention. */
const LENGTHS = process.env.RELAY_YEAR_SHORT === undefined ? YEAR : SIX_WEEKS

test.each(['sqlite', 'postgres'] as const)('a year on %s loses nothing, keeps no erased word, and stops growing', async (engine) => {
  console.log(`seed ${SEED}`)
  const { violations, ...report } = await liveThroughYear({ engine, lengths: LENGTHS, seed: SEED })
  console.log(JSON.stringify(report, null, 2))
  expect(violations).toEqual([])
  expect(report.growth).toBeLessThanOrEqual(1.1)
})
