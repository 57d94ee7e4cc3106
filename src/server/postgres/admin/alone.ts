import type { Pool, QueryResult, QueryResultRow } from 'pg'

/** Shorter than the driver's own limit. Otherwise the server would still wait for the lock after the driver has given up the statement. */
const ALONE_LOCK_TIMEOUT_MS = 1000

/**
 * Runs one statement, and limits its wait for locks. The statement and its limit go out in one message, which the server runs as one
 * transaction. So no transaction stays open between two messages, and the setting does not outlast the statement, even behind a pooler. A
 * message with several statements cannot have parameters.
 */
export async function alone<R extends QueryResultRow>(pool: Pool, statement: string): Promise<readonly R[]> {
  const results: unknown = await pool.query(`set local lock_timeout = ${ALONE_LOCK_TIMEOUT_MS}; ${statement}`)
  // The driver returns a list for several statements, but its types do not say so.
  const [, { rows }] = results as readonly [QueryResult, QueryResult<R>]
  return rows
}

/** Writes an integer as text, for a statement that cannot have parameters. */
export function whole(number: number): string {
  if (!Number.isSafeInteger(number)) throw new RangeError('not a whole number')
  return String(number)
}
