import { setTimeout as pause } from 'node:timers/promises'
import { endThreads } from './threads/thread.ts'

/** How long threads and file operations may take to end before the process is ended over their heads. */
const GRACE_MS = 1000
const LOOK_EVERY_MS = 20

/**
 * Ends this process, whatever stands still in it. Node's own exit waits for each thread, and one inside a system call that never returns cannot be ended: then the
 * system ends the process, with a signal in place of the code.
 */
export async function endProcess(code: number): Promise<never> {
  const late = pause(GRACE_MS, false, { ref: true })
  if (await Promise.race([endsByItself(), late])) process.exit(code)
  process.kill(process.pid, 'SIGKILL')
  return await new Promise<never>(() => undefined)
}

async function endsByItself(): Promise<true> {
  await endThreads()
  // Operations on files and look-ups of names run on Node's own threads.
  while (process.getActiveResourcesInfo().some((name) => /^FSReq|AddrInfo/.test(name))) await pause(LOOK_EVERY_MS)
  return true
}
