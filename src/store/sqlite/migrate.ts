import type Database from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { MADE_UNRELEASED } from '../unreleased.ts'
import { schema } from './migrations/0001-schema.ts'

/** From the first release on, append only: a released step never changes (decision 0004). */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-schema': schema,
}

/** The first step of every version before the first release. */
const UNRELEASED = '0001-initial'

/**
 * Migrates a database, or leaves it unchanged. On SQLite the migrator uses neither transactions nor locks, so all migrations run in one
 * transaction that takes the write lock first. Refuses a database of a newer version.
 */
export async function migrate(db: Database.Database, migrations = MIGRATIONS): Promise<void> {
  // This Kysely is not destroyed, because that would close the database.
  const kysely = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) })
  await kysely.connection().execute(async (connection) => {
    await sql`BEGIN IMMEDIATE`.execute(connection)
    const migrator = new Migrator({ db: connection, provider: { getMigrations: async () => ({ ...migrations }) } })
    const { error } = await migrator.migrateToLatest()
    if (error === undefined) {
      await sql`COMMIT`.execute(connection)
      return
    }
    await sql`ROLLBACK`.execute(connection)
    throw new Error(`store: ${db.name} cannot be migrated to the schema of this version: ${describe(error)}`, { cause: error })
  })
}

function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  if (message.includes(UNRELEASED)) return MADE_UNRELEASED
  return message.includes('is missing') ? `it was made by a newer one (${message})` : message
}
