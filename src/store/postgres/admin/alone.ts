import type { Pool, QueryResult, QueryResultRow } from 'pg'

/** Shorter than the driver's own wait, so that a statement that the driver gave up does not go on waiting at the server. */
const ALONE_LOCK_TIMEOUT_MS = 1000

/**
 * Runs one statement with a limit on its wait for locks. Both are sent as one message, which the server runs as one transaction, so that
 * no transaction stays open between two messages and a pooler keeps no setting. Such a message cannot have parameters.
 */
export async function alone<R extends QueryResultRow>(pool: Pool, statement: string): Promise<readonly R[]> {
  const results: unknown = await pool.query(`set local lock_timeout = ${ALONE_LOCK_TIMEOUT_MS}; ${statement}`)
  // The driver answers several statements with a list, which its types do not know.
  const [, { rows }] = results as readonly [QueryResult, QueryResult<R>]
  return rows
}

/** The text of an integer, for a statement that cannot have parameters. */
export function whole(number: number): string {
  if (!Number.isSafeInteger(number)) throw new RangeError('not a whole number')
  return String(number)
}
