import { getPriority, setPriority } from 'node:os'

/** Enough to be passed by whoever answers, and still have a fifth of a processor that others would take whole. */
const NICE = 4

/**
 * Lets the calling thread, and threads it starts from now on, go behind the others where processors are scarce: a read is waited for by a
 * person, and what is recorded has a sync to wait for anyway. On Linux alone; elsewhere this would be said of the whole process.
 */
export function goBehind(): void {
  if (process.platform !== 'linux') return
  try {
    if (getPriority() < NICE) setPriority(NICE)
  } catch {
    // Where even this is forbidden, it goes as it is.
  }
}
