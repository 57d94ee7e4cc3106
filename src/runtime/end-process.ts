import { setTimeout as pause } from 'node:timers/promises'
import { endThreads } from './threads/thread.ts'

/** How long threads and file operations may take to end before the process is killed. */
const GRACE_MS = 1000
const LOOK_EVERY_MS = 20

/**
 * Ends this process even if a thread hangs. Node's own exit waits for each thread, but a thread in a system call that never returns cannot
 * be ended. Then the process kills itself, so it ends with a signal instead of the code.
 */
export async function endProcess(code: number): Promise<never> {
  const late = pause(GRACE_MS, false, { ref: true })
  if (await Promise.race([endsByItself(), late])) process.exit(code)
  process.kill(process.pid, 'SIGKILL')
  return await new Promise<never>(() => undefined)
}

async function endsByItself(): Promise<true> {
  await endThreads()
  // Operations on files and look-ups of names run on Node's internal threads, so wait for them too.
  while (process.getActiveResourcesInfo().some((name) => /^FSReq|AddrInfo/.test(name))) await pause(LOOK_EVERY_MS)
  return true
}
