import { setTimeout as pause } from 'node:timers/promises'

/** The lock is held for at most this long, even if the work takes longer. Writers wait longer than this for a lock. */
const HOLD_MS_MAX = 250
/** The lock is then free for at least this long. A writer that waits for a file's lock looks at least every 100 ms. */
const REST_MS = 110

/** A lock that keeps others from recording. */
export interface WritersLock {
  take(): Promise<void>
  /** Does nothing if the lock is not taken. */
  release(): Promise<void>
}

/** Runs work while a lock is held, and then gives other writers some time. If the lock cannot be taken, the work runs without it. */
export function createHoldOff({ take, release }: WritersLock): <T>(work: () => Promise<T>) => Promise<T> {
  let restUntilMs = 0
  return async (work) => {
    await pause(Math.max(0, restUntilMs - performance.now()))
    await take().catch(() => undefined)
    const timer = setTimeout(() => void release().catch(() => undefined), HOLD_MS_MAX)
    try {
      return await work()
    } finally {
      clearTimeout(timer)
      await release()
      restUntilMs = performance.now() + REST_MS
    }
  }
}
