import { readdirSync, readFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/** Enough to be passed by whoever answers, and still have a fifth of a processor that others would take whole. */
const NICE = 4

/**
 * Lets the calling thread, and threads it starts from now on, go behind the others where processors are scarce: a read is waited for by a
 * person, and a push has a sync to wait for anyway. On Linux alone; elsewhere this would be said of the whole process.
 */
export function lowerPriority(): void {
  if (process.platform === 'linux') makeNice(0, NICE)
}

/** What the platform calls the threads on which it compiles and collects beside a program. */
const HELPER = 'V8Worker'
/** The least there is: they get what nobody else wants, and next to nothing where processors are short. */
const HELPER_NICE = 19
const TASKS = '/proc/self/task'

/**
 * Lets the platform's own threads go behind all others. What they compile is wanted some time; but when one is woken, it is where the thread
 * that answers runs, and that one then waits for milliseconds though another processor may be idle. On Linux alone.
 */
export function lowerHelperPriority(): void {
  if (process.platform !== 'linux') return
  for (const id of tasks()) if (nameOf(id) === HELPER) makeNice(Number(id), HELPER_NICE)
}

function tasks(): readonly string[] {
  try {
    return readdirSync(TASKS)
  } catch {
    return []
  }
}

function nameOf(id: string): string | null {
  try {
    return readFileSync(`${TASKS}/${id}/comm`, 'utf8').trim()
  } catch {
    // It has ended meanwhile.
    return null
  }
}

/** `id`: a thread of this process; 0: the one that calls. */
function makeNice(id: number, nice: number): void {
  try {
    if (getPriority(id) < nice) setPriority(id, nice)
  } catch {
    // Where even this is forbidden, it goes as it is.
  }
}
