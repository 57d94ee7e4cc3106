import type { Pool } from 'pg'
import type { Engine } from '../contract.ts'
import { createReadStore } from '../read-store.ts'
import { createPostgresReader, createPostgresWriter } from './postgres.ts'
import { migratePostgres } from './postgres-migrate.ts'
import { nameDatabase, openPool } from './postgres-pool.ts'
import { createPostgresWriteStore } from './postgres-write-store.ts'
import { refuseUnsafeServer } from './refuse-unsafe-server.ts'

const CONNECT_TIMEOUT_MS = 5000
/** A little more than the longest that a statement may take at the server: whoever has not answered by then is gone. */
const ANSWER_TIMEOUT_MS = 11_000
const WRITERS = 6
const READERS = 6

/** How connections are used. */
const OPTIONS = { named: true }

/** A place is the address of the database. */
export const postgres: Engine = {
  name: 'postgres',
  async openWriteStore(place) {
    const name = nameDatabase(place)
    const pool = openPostgres(place, WRITERS)
    try {
      await refuseUnsafeServer(pool, name)
      await migratePostgres(pool, name)
    } catch (error) {
      await pool.end()
      throw error
    }
    return { ...createPostgresWriteStore(createPostgresWriter(pool, OPTIONS)), close: () => end(pool) }
  },
  openReadStore: (place) => createReadStore(createPostgresReader(openPostgres(place, READERS), OPTIONS)),
}

/** Once, however often it is asked for. */
async function end(pool: Pool): Promise<void> {
  if (!pool.ending) await pool.end()
}

function openPostgres(place: string, connectionsMax: number) {
  return openPool(place, {
    connectionsMax,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
    pipeline: true,
    onConnectionLost: () => undefined,
  })
}
