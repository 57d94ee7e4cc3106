import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Adds what an endpoint refuses, and over which earlier sequences it received backfill. */
export const refusals: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('endpoint').addColumn('refused_from', 'integer').execute()
    await db.schema.alterTable('endpoint').addColumn('refused_at_ms', 'integer').execute()
    await db.schema
      .alterTable('endpoint')
      .addColumn('backfill_earlier', 'text', (column) => column.notNull().defaultTo('[]'))
      .execute()
  },
}
