import { setTimeout as pause } from 'node:timers/promises'
import type { QueryResult, QueryResultRow } from 'pg'
import { systemCode } from '../../../core/domain/errors.ts'
import type { SqlValue } from '../../../core/store/statement.ts'
import { IDLE_MS_MAX, PLAN_SETTINGS } from '../postgres.ts'
import { isConflict, movingFailure, openingFailure } from '../postgres-failure.ts'
import { nameDatabase } from '../postgres-pool.ts'
import { type ServerWatch, watchServer } from '../server-watch.ts'

export interface MoveClient {
  query<Row extends QueryResultRow>(text: string, values?: readonly SqlValue[]): Promise<QueryResult<Row>>
  /**
   * Runs work in a transaction with the relay's planner settings and its limit on idle time. If a transaction is open, runs the work in it.
   * `settings`: more settings of the server.
   */
  transaction<T>(settings: Readonly<Record<string, string | number>>, work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

const CONNECT_TIMEOUT_MS = 5000
/** Longer than any statement of a move takes. A relay that stops may have to wait this long. */
export const ANSWER_TIMEOUT_MS = 30_000

/**
 * Opens a connection for a move. `watch`: notices when the server falls silent, so that a call fails at once; absent: each call waits.
 */
export async function openMoveClient(address: string, watch?: ServerWatch): Promise<MoveClient> {
  const { pool, run, close } = (watch ?? watchServer(address)).openPool({
    connectionsMax: 1,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
  })
  const ask: typeof run = watch === undefined ? (work) => work(() => undefined) : run
  try {
    const client = await ask(() => pool.connect())
    const query: MoveClient['query'] = async (text, values = []) => {
      try {
        return await ask(() => client.query({ text, values: [...values] }))
      } catch (error) {
        throw movingFailure(error)
      }
    }
    let isOpen = false
    return {
      query,
      async transaction(settings, work) {
        if (isOpen) return await work()
        const set = Object.entries({ ...PLAN_SETTINGS, idle_in_transaction_session_timeout: IDLE_MS_MAX, ...settings }).map(
          ([name, value]) => `set local ${name} = ${value}`,
        )
        isOpen = true
        try {
          await query(['begin isolation level read committed', ...set].join('; '))
          const result = await work()
          await query('commit')
          return result
        } catch (error) {
          await query('rollback').catch(() => undefined)
          throw error
        } finally {
          isOpen = false
        }
      },
      async close() {
        client.release(true)
        await close()
      },
    }
  } catch (error) {
    await close()
    throw openingFailure(nameDatabase(address), error)
  }
}

export async function withMoveClient<T>(address: string, work: (client: MoveClient) => Promise<T>, watch?: ServerWatch): Promise<T> {
  const client = await openMoveClient(address, watch)
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

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
