import Database from 'better-sqlite3'
import { Kysely, PostgresDialect, SqliteDialect, sql } from 'kysely'
import { Pool } from 'pg'
import { began as ofSqlite } from '../../../src/core/store/sqlite/migrations/steps.ts'
import { began as ofPostgres } from '../../../src/server/postgres/migrations/postgres-steps.ts'

const WITHOUT = [
  'drop index if exists feed_backfill',
  'create index feed_backfill on feed (sequence) where payload_ref = -1',
  'alter table sighting drop column tellings',
  'alter table feed drop column earlier_tellings',
  'alter table endpoint drop column began_at_ms',
]

/** Takes the times at which endpoints began out of a closed store, as if an earlier version had written it, and then migrates it again. */
export async function upgradeToBegan(place: string): Promise<void> {
  const isFile = !place.startsWith('postgres')
  const dialect = isFile
    ? new SqliteDialect({ database: new Database(place) })
    : new PostgresDialect({ pool: new Pool({ connectionString: place, max: 1 }) })
  const db = new Kysely<unknown>({ dialect })
  try {
    for (const statement of WITHOUT) await sql.raw(statement).execute(db)
    await (isFile ? ofSqlite : ofPostgres).up(db)
  } finally {
    await db.destroy()
  }
}
