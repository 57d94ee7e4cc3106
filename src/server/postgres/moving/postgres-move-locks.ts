import { setTimeout as pause } from 'node:timers/promises'
import { systemCode } from '../../../core/domain/errors.ts'
import { isConflict } from '../conflicts.ts'
import type { MoveClient } from './postgres-move-client.ts'

const REST_MS = 50
/** Longer than `deadlock_timeout` (1 s), after which the server cancels an autovacuum that holds the lock. */
const LONG_MS = 1500
const LOCK_NOT_AVAILABLE = '55P03'

/** How long each attempt waits for a lock, in milliseconds. The first waits are short, because writers queue behind them. */
export const BESIDE_WRITERS: readonly number[] = [...Array.from({ length: 8 }, () => 250), LONG_MS, LONG_MS, LONG_MS]
/** The waits while nobody writes, in milliseconds. */
export const ALONE: readonly number[] = [LONG_MS, LONG_MS]

/** Runs work in a transaction that takes locks. Each attempt waits for a lock as long as its item of `waits` says. */
export async function locking<T>(
  client: MoveClient,
  waits: readonly number[],
  work: () => Promise<T>,
  settings: Readonly<Record<string, number>> = {},
): Promise<T> {
  for (let nth = 0; ; nth++) {
    try {
      return await client.transaction({ ...settings, lock_timeout: waits[nth] ?? LONG_MS }, work)
    } catch (error) {
      if (!isHeld(error) || nth >= waits.length - 1) throw error
      await pause(REST_MS)
    }
  }
}

function isHeld(error: unknown): boolean {
  return isConflict(error) || systemCode(error) === LOCK_NOT_AVAILABLE
}

/** Ignores the error of a lock that others hold. Throws any other error. */
export function ignoreHeld(error: unknown): void {
  if (!isHeld(error)) throw error
}
