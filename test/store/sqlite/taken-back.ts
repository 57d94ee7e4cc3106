import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Takes a closed store back to what a relay left before a migration, says what it then holds, and runs the migration over it. */
export async function migrateAnew(path: string, takeBack: string, migration: Migration, query?: string): Promise<readonly unknown[]> {
  const db = new Database(path)
  db.exec(takeBack)
  const held = query === undefined ? [] : db.prepare(query).all()
  // Ends the connection too.
  const kysely = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) })
  await migration.up(kysely)
  await kysely.destroy()
  return held
}
