import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Adds when the relay learnt of each sighting. Of those that are there it is not known, and stays null. */
export const learnt: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('sighting').addColumn('learnt_at_ms', 'integer').execute()
  },
}
