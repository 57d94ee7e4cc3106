import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const STEPS = ['writeSync', 'fsyncSync', 'renameSync', 'rmSync', 'fchmodSync', 'mkdirSync'] as const

/** Thrown at the step at which the process is said to have died, and at every later one. */
class Died extends Error {}

/**
 * Runs `work` as a process that dies right before its nth change of files (counted from 0): from then on no call of `node:fs` changes anything.
 * Returns what `work` returned, or null if it died, and how many changes it began.
 */
export async function dyingAtStep<T>(step: number, work: () => Promise<T>): Promise<{ readonly result: T | null; readonly steps: number }> {
  let steps = 0
  const count = () => {
    if (steps >= step) throw new Died()
    steps += 1
  }
  const { openSync } = fs
  const real = { openSync, ...Object.fromEntries(STEPS.map((name) => [name, fs[name]])) }
  for (const name of STEPS) Object.assign(fs, { [name]: before(count, fs[name]) })
  fs.openSync = (path, flags, mode) => {
    if (typeof flags === 'string' && flags !== 'r') count()
    return openSync(path, flags, mode)
  }
  syncBuiltinESMExports()
  try {
    return { result: await work(), steps }
  } catch (error) {
    if (!(error instanceof Died)) throw error
    return { result: null, steps }
  } finally {
    Object.assign(fs, real)
    syncBuiltinESMExports()
  }
}

function before(count: () => void, call: (...given: never[]) => unknown) {
  return (...given: never[]) => {
    count()
    return call(...given)
  }
}
