import { openPostgres } from './postgres-engine.ts'
import { inspectSchema } from './postgres-migrate.ts'
import { nameDatabase } from './postgres-pool.ts'
import { refuseUnsafeServer } from './refuse-unsafe-server.ts'

/** The state of a database that was inspected without changing it. */
export interface InspectedDatabase {
  /** `none`: the relay's tables do not exist yet. */
  readonly schema: 'none' | 'older' | 'current'
  /** The number of relays that use the database now. */
  readonly replicas: number
}

/** Finds out whether a relay could use a database, without changing anything. If not, rejects with the reasons and their remedies. */
export async function inspectPostgres(url: string): Promise<InspectedDatabase> {
  const name = nameDatabase(url)
  const { pool, close } = openPostgres(url, 1)
  try {
    await refuseUnsafeServer(pool, name)
    const schema = await inspectSchema(pool, name)
    if (schema === 'none') {
      const { rows } = await pool.query<{ may: boolean }>("select has_schema_privilege(current_schema(), 'CREATE') as may")
      if (rows[0]?.may !== true)
        throw new Error(`store: the relay's user may not make its tables in ${name}. Make that user the owner of the database.`)
      return { schema, replicas: 0 }
    }
    const { rows } = await pool.query<{ live: number }>(
      'select count(*)::integer as live from replica where until_ms > extract(epoch from now()) * 1000',
    )
    return { schema, replicas: rows[0]?.live ?? 0 }
  } finally {
    await close()
  }
}
