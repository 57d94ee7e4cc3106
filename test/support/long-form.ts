import type { Engine } from '../../src/store/contract.ts'

// A test that imports this has a long form: `npm run faults` runs it.

/** Whether this is `npm run faults`: as many, as often and for as long as FAULTS has it. */
export const LONG = process.env.RELAY_FAULTS === 'long'

/** How many cases a property is tried on. On a server each takes many times as long, so all of them are for the long form. */
export function runsOn(engine: Engine, runs: number, onServer: number): number {
  return engine.name === 'postgres' && !LONG ? onServer : runs
}
