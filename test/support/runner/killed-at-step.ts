/**
 * Returns an environment in which a Node process kills itself (SIGKILL) right before its nth change of files, counted from 1. A change is a call of
 * `node:fs` that opens a file for writing, or that writes, syncs, copies, renames or removes.
 */
export function killedAtStep(step: number): NodeJS.ProcessEnv {
  const program = `
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    let steps = 0
    const count = () => {
      steps += 1
      if (steps === ${step}) process.kill(process.pid, 'SIGKILL')
    }
    for (const name of ['writeSync', 'fsyncSync', 'copyFileSync', 'renameSync', 'rmSync', 'ftruncateSync', 'fchmodSync']) {
      const real = fs[name]
      fs[name] = (...given) => {
        count()
        return real(...given)
      }
    }
    const open = fs.openSync
    fs.openSync = (path, flags = 'r', ...given) => {
      if (flags !== 'r') count()
      return open(path, flags, ...given)
    }
    syncBuiltinESMExports()`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}` }
}
