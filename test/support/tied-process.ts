import type { ChildProcess } from 'node:child_process'
import { onTestFinished } from 'vitest'

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Kills a process when its test ends, even a test that timed out and so disposed of nothing; at the latest with this process. */
export function tieToTest(child: ChildProcess): void {
  running.add(child)
  child.once('exit', () => running.delete(child))
  try {
    onTestFinished(() => void child.kill('SIGKILL'))
  } catch {
    // A hook started it for several tests, and the matching hook stops it.
  }
}
