import type { Pool, QueryResult, QueryResultRow } from 'pg'

/** Shorter than the driver's own wait, so that a statement which is given up does not go on waiting on the server while commits hang there. */
const ALONE_LOCK_TIMEOUT_MS = 1000

/**
 * Runs one statement that waits for locks only so long. The server makes one transaction of the one message, so that nothing is left open between two and
 * a pooler keeps nothing of it; such a message has no parameters.
 */
export async function alone<R extends QueryResultRow>(pool: Pool, statement: string): Promise<readonly R[]> {
  const results: unknown = await pool.query(`set local lock_timeout = ${ALONE_LOCK_TIMEOUT_MS}; ${statement}`)
  // The driver answers several statements with a list, which its types do not know.
  const [, { rows }] = results as readonly [QueryResult, QueryResult<R>]
  return rows
}

/** A number as it is written in a statement. */
export function whole(number: number): string {
  if (!Number.isSafeInteger(number)) throw new RangeError('not a whole number')
  return String(number)
}
