import { readFileSync } from 'node:fs'

/** The environment variable that names the file with the milliseconds by which simulated time is ahead of real time. */
export const CLOCK_FILE = 'RELAY_SIMULATED_CLOCK'

const path = process.env[CLOCK_FILE]

/** Milliseconds by which the simulation is ahead of the real clock. Read each time, because the test moves it whenever it likes. */
export function aheadMs(): number {
  return path === undefined ? 0 : Number(readFileSync(path, 'latin1'))
}

/** The simulated wall clock, epoch milliseconds. */
export function simulatedNow(): number {
  return Date.now() + aheadMs()
}
