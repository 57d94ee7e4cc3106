import { setTimeout as pause } from 'node:timers/promises'

/** Less than a writer waits before it reports a failure. The work does not decide it, because the new store may be slow to answer. */
const HOLD_MS_MAX = 250
/** A writer that waits for the lock of a file looks again after a tenth of a second at most. */
const REST_MS = 110

/** A lock that keeps others from recording. */
export interface WritersLock {
  take(): Promise<void>
  /** Does nothing if it is not taken. */
  release(): Promise<void>
}

/** Runs work while a lock is held, and leaves others time before the next. If the lock cannot be taken, the work is done beside them. */
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
