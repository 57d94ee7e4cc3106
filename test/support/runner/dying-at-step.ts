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
  try {
    return { result: await changing(STEPS, count, work), steps }
  } catch (error) {
    if (!(error instanceof Died)) throw error
    return { result: null, steps }
  }
}

/** What needs room on a disk. */
const TAKING_ROOM = ['writeSync', 'fsyncSync', 'renameSync', 'mkdirSync'] as const

/** Runs `work` on a disk that has no room from the nth change on that takes some (counted from 0). Files can still be deleted. */
export async function onFullDisk<T>(step: number, work: () => Promise<T>): Promise<T> {
  let steps = 0
  const count = (call: string, ...given: readonly unknown[]) => {
    if (steps++ < step) return
    const path = typeof given[0] === 'string' ? { path: given[0] } : {}
    throw Object.assign(new Error(`ENOSPC: no space left on device, ${call.replace('Sync', '')}`), { code: 'ENOSPC', ...path })
  }
  return await changing(TAKING_ROOM, count, work)
}

/** Runs `work` while something is called before each of its calls of `node:fs` that has one of these names, or opens a file to write. */
async function changing<T>(
  names: readonly (typeof STEPS)[number][],
  before: (call: string, ...given: readonly unknown[]) => void,
  work: () => Promise<T>,
): Promise<T> {
  const { openSync } = fs
  const real = { openSync, ...Object.fromEntries(names.map((name) => [name, fs[name]])) }
  for (const name of names) {
    const call: (...given: never[]) => unknown = fs[name]
    Object.assign(fs, {
      [name]: (...given: never[]) => {
        before(name, ...given)
        return call(...given)
      },
    })
  }
  fs.openSync = (path, flags, mode) => {
    if (typeof flags === 'string' && flags !== 'r') before('openSync', path)
    return openSync(path, flags, mode)
  }
  syncBuiltinESMExports()
  try {
    return await work()
  } finally {
    Object.assign(fs, real)
    syncBuiltinESMExports()
  }
}
