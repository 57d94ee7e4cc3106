import type { Engine } from '../../../src/store/contract.ts'

// What of a test depends on the command that runs it. A test that imports this has a long form: `npm run faults` runs it.

const FORM = process.env.RELAY_FAULTS

/** Whether this is `npm run faults`: as many, as often and for as long as FAULTS has it. */
export const LONG = FORM === 'long'

/** Whether this is `npm test`, or what the gate adds to it: once, and nothing about load. */
export const SHORT = FORM === undefined || FORM === 'extended'

/** How many, or what else, by the command: `npm test`, `npm run test:stress`, `npm run faults`. */
export function byForm<Value>(short: Value, stress: Value, long: Value = stress): Value {
  if (SHORT) return short
  return LONG ? long : stress
}

/** Registers a test for `npm run faults` alone: one that shows in another way what a shorter test has shown. */
export const onlyLong = (test: (title: string, run: () => Promise<void>) => void) => (LONG ? test : () => undefined)

/** On how many cases a law is tried: a few in `npm test`, all where it is repeated. The first cases are the same. */
export const casesOf = (all: number, few: number): number => (SHORT ? few : all)

/** The same for a law about a store: a quarter in `npm test`. On a server each case takes many times as long, so all of them are for the long form. */
export function runsOn(engine: Engine, runs: number, onServer: number): number {
  const some = engine.name === 'postgres' && !LONG ? onServer : runs
  return SHORT ? Math.ceil(some / 4) : some
}
