import type { Engine } from '../../../src/core/store/contract.ts'

// How often and how long tests run depends on the command. A test that imports this has a long form, which `npm run faults` runs.

const FORM = process.env.RELAY_FAULTS

/** Whether this is `npm run faults`, which runs each test as often and for as long as docs/faults.md says. */
export const LONG = FORM === 'long'

/** Whether this is `npm test` or `npm run test:extended`, which run each test once and test no load. */
export const SHORT = FORM === undefined || FORM === 'extended'

/** Chooses a value by the command: `npm test`, `npm run test:stress`, `npm run faults`. */
export function byForm<Value>(short: Value, stress: Value, long: Value = stress): Value {
  if (SHORT) return short
  return LONG ? long : stress
}

/** Registers a test for `npm run faults` only, because `npm test` has a shorter test of the same behaviour. */
export const onlyLong = (test: (title: string, run: () => Promise<void>) => void) => (LONG ? test : () => undefined)

/** How many cases, rounds or steps a test takes: `few` in `npm test`, `all` in the longer commands. */
export const casesOf = (all: number, few: number): number => (SHORT ? few : all)

/** How many random cases a test tries on a store. Only the long form tries all on PostgreSQL, where a case takes long. `npm test` tries a quarter. */
export function runsOn(engine: Engine, runs: number, onServer: number): number {
  const some = engine.name === 'postgres' && !LONG ? onServer : runs
  return SHORT ? Math.ceil(some / 4) : some
}
