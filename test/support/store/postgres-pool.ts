import type { Pool } from 'pg'
import { onTestFinished } from 'vitest'
import { openPool } from '../../../src/server/postgres/postgres-pool.ts'

/** Opens connections with the relay's settings and closes them after the test. */
export function openTestPool(url: string, connectionsMax = 3): Pool {
  const pool = openPool(url, { connectionsMax, connectTimeoutMs: 60_000, pipeline: true, onConnectionLost: () => undefined })
  onTestFinished(async () => {
    if (!pool.ended) await pool.end()
  })
  return pool
}
