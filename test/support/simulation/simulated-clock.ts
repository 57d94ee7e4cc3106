import { readFileSync } from 'node:fs'

/** The environment variable that names the file with the milliseconds by which simulated time is ahead of real time. */
export const CLOCK_FILE = 'RELAY_SIMULATED_CLOCK'

const path = process.env[CLOCK_FILE]

/** Returns by how many milliseconds the simulation is ahead of the real clock. Reads the file each time, because the test may change it at any time. */
export function aheadMs(): number {
  return path === undefined ? 0 : Number(readFileSync(path, 'latin1'))
}

/** Returns the simulated wall-clock time, in epoch milliseconds. */
export function simulatedNow(): number {
  return Date.now() + aheadMs()
}
