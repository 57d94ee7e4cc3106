import type { ChildProcess } from 'node:child_process'
import { onTestFinished } from 'vitest'

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Ends a process with the test that started it, even one that timed out and so disposes of nothing; at the latest with this process. */
export function tieToTest(child: ChildProcess): void {
  running.add(child)
  child.once('exit', () => running.delete(child))
  try {
    onTestFinished(() => void child.kill('SIGKILL'))
  } catch {
    // Started by a hook, for several tests: the hook's counterpart ends it.
  }
}
