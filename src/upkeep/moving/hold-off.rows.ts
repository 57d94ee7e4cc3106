import { setTimeout as pause } from 'node:timers/promises'

/** The longest time that the lock is held, even if the work takes longer. Writers wait longer than this before they give up. */
const HOLD_MS_MAX = 250
/** The shortest time for which the lock then stays free. A writer that waits for the lock tries again at least every 100 ms. */
const REST_MS = 110

/** A lock that keeps writers from recording. */
export interface WritersLock {
  take(): Promise<void>
  /** Does nothing if the lock is not taken. */
  release(): Promise<void>
}

/** Makes a function that runs work under the lock, with pauses for writers. If it cannot take the lock, it runs the work without it. */
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
