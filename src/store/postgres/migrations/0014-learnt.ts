import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Adds when the relay learnt of each sighting: see the step of the same name on SQLite. */
export const learnt: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('sighting').addColumn('learnt_at_ms', 'bigint').execute()
  },
}
