import { setTimeout as pause } from 'node:timers/promises'
import { createFailureLog } from '../../core/flow/log-digest.ts'
import type { Log } from '../../core/flow/ports.ts'
import { systemClock } from '../../core/runtime/system-clock.ts'
import { isServerAway } from '../../server/postgres/postgres-failure.ts'

const REST_MS = 250

export interface UntilReachable {
  readonly goesOn: () => boolean
  readonly log: Pick<Log, 'error' | 'warn' | 'info' | 'debug'>
}

/**
 * Repeats work that needs the database while its server cannot be reached. A restart of the server during a move must not end the relay.
 * Rejects with any other failure.
 */
export async function untilReachable<T>(work: () => Promise<T>, { goesOn, log }: UntilReachable): Promise<T> {
  const failures = createFailureLog({ log, clock: systemClock })
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isServerAway(error) || !goesOn()) throw error
      failures.add('error', { err: error }, 'the database cannot be reached while its store is moved; the relay tries again')
      await pause(REST_MS)
    }
  }
}
