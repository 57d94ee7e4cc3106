import type { Pool } from 'pg'
import { TOMBSTONE_KEY } from '../../core/store/settings.ts'
import type { InspectedDatabase, ServerStores } from '../../upkeep/server-stores.ts'
import { markRestored } from './backups/mark-restored.ts'
import { postgresMoves } from './moving/postgres-moves.ts'
import { openPostgres, postgres, refuseUnsafeServer } from './postgres-engine.ts'
import { isServerAway } from './postgres-failure.ts'
import { inspectSchema } from './postgres-migrate.ts'
import { nameDatabase } from './postgres-pool.ts'

/** Finds out whether a relay could use a database, without changing anything. If not, rejects with the reasons and their remedies. */
async function inspectPostgres(url: string): Promise<InspectedDatabase> {
  const name = nameDatabase(url)
  const { pool, close } = openPostgres(url, 1)
  try {
    await refuseUnsafeServer(pool, name)
    const schema = await inspectSchema(pool, name)
    if (schema === 'none') {
      const { rows } = await pool.query<{ may: boolean }>("select has_schema_privilege(current_schema(), 'CREATE') as may")
      if (rows[0]?.may !== true)
        throw new Error(`store: the relay's user may not make its tables in ${name}. Make that user the owner of the database.`)
      return { schema, replicas: 0, tombstoneKey: null }
    }
    const { rows } = await pool.query<{ live: number }>(
      'select count(*)::integer as live from replica where until_ms > extract(epoch from now()) * 1000',
    )
    return { schema, replicas: rows[0]?.live ?? 0, tombstoneKey: schema === 'current' ? await tombstoneKeyIn(pool) : null }
  } finally {
    await close()
  }
}

async function tombstoneKeyIn(pool: Pool): Promise<string | null> {
  const { rows } = await pool.query<{ value: Buffer }>('select value from setting where name = $1 and exists (select 1 from tombstone)', [
    TOMBSTONE_KEY,
  ])
  return rows[0]?.value.toString() ?? null
}

export const SERVER_STORES: ServerStores = {
  engine: postgres,
  moves: postgresMoves,
  nameOf: nameDatabase,
  inspect: inspectPostgres,
  isAway: isServerAway,
  markRestored,
}
