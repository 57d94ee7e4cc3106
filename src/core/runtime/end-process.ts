import { setTimeout as pause } from 'node:timers/promises'
import { endThreads } from './threads/thread.ts'

/** How long the process waits for threads and file operations to end. Then it kills itself. */
const GRACE_MS = 1000
const LOOK_EVERY_MS = 20

/**
 * Ends this process even if a thread hangs. `process.exit` waits for every thread, and would wait forever for a thread in a system call that
 * never returns. In that case the process kills itself, and so ends with a signal and not with `code`.
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
