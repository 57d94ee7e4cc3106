import { inspect } from 'node:util'
import { expect } from 'vitest'
import { refuseUnsafeServer } from '../../../src/server/postgres/postgres-engine.ts'
import { nameDatabase, openPool } from '../../../src/server/postgres/postgres-pool.ts'

/** A password that no message may show. */
export const CANARY = 'canary-7f3a'

/** Returns the reason why a start of the relay on a database is refused, or null if it is accepted. */
export async function refusalOf(url: string, connectTimeoutMs = 5000): Promise<string | null> {
  const pool = openPool(url, { connectionsMax: 1, connectTimeoutMs, onConnectionLost: () => undefined })
  try {
    await refuseUnsafeServer(pool, nameDatabase(url))
    return null
  } catch (error) {
    expect(inspect(error, { depth: 5 })).not.toContain(CANARY)
    return error instanceof Error ? error.message : String(error)
  } finally {
    await pool.end()
  }
}

export function changed(url: string, parts: Partial<Pick<URL, 'hostname' | 'pathname' | 'username' | 'password' | 'search'>>): string {
  return Object.assign(new URL(url), parts).href
}
