import type { Pool } from 'pg'
import { onTestFinished } from 'vitest'
import { openPool } from '../../src/store/postgres/postgres-pool.ts'

/** Connections as the relay has them, closed when the test is done. */
export function openTestPool(url: string, connectionsMax = 3): Pool {
  const pool = openPool(url, { connectionsMax, connectTimeoutMs: 5000, pipeline: true, onConnectionLost: () => undefined })
  onTestFinished(async () => {
    if (!pool.ended) await pool.end()
  })
  return pool
}
