import type { Engine } from '../../src/store/contract.ts'

// A test that imports this has a long form: `npm run faults` runs it.

/** Whether this is `npm run faults`: as many, as often and for as long as FAULTS has it. */
export const LONG = process.env.RELAY_FAULTS === 'long'

/** Whether this is `npm run test:stress`, whose files repeat what the other tests try a few times. */
const REPEATED = LONG || process.env.RELAY_CASES === 'all'

/** On how many cases a law is tried: a few in `npm test`, all where it is repeated. The first cases are the same. */
export const casesOf = (all: number, few: number): number => (REPEATED ? all : few)

/** The same for a law about a store. On a server each case takes many times as long, so all of them are for the long form. */
export function runsOn(engine: Engine, runs: number, onServer: number): number {
  return engine.name === 'postgres' && !LONG ? onServer : runs
}
