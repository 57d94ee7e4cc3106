import { createFailureLog } from '../flow/failure-log.ts'
import { createWakeupTimer } from '../runtime/wakeup-timer.ts'
import { startWorker } from '../runtime/worker.ts'
import type { Relay } from './relay.ts'

/** How long a worker rests after a failed pass, in milliseconds. */
const REST_MS = 1000

export interface RetryingWorkerOptions extends Pick<Relay, 'log' | 'clock'> {
  /** The message to log when a pass fails. */
  readonly failure: string
  /** Whether this replica still has the role of the worker. If it has lost the role, the failure of a pass is no error. */
  readonly holds: () => boolean
}

/** Starts a worker that tries again by itself after a failed pass. */
export function startRetryingWorker(pass: () => Promise<'busy' | 'idle'>, { log, clock, failure, holds }: RetryingWorkerOptions) {
  const failures = createFailureLog({ log, clock })
  const worker = startWorker(pass, (error) => {
    if (holds()) failures.add('error', { err: error }, failure)
    else log.debug({ err: error }, failure)
    timer.set(clock.now() + REST_MS)
  })
  const timer = createWakeupTimer(worker.wake, clock.now)
  return {
    wake: worker.wake,
    rests: worker.rests,
    async stop() {
      await worker.stop()
      // Cancel the timer after the last pass, which may have set it.
      timer.cancel()
    },
  }
}
