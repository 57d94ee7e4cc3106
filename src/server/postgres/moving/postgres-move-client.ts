import type { QueryResult, QueryResultRow } from 'pg'
import type { SqlValue } from '../../../core/store/statement.ts'
import { IDLE_MS_MAX, PLAN_SETTINGS } from '../postgres.ts'
import { movingFailure, openingFailure } from '../postgres-failure.ts'
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
