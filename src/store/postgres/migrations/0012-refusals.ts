import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import { text } from './text.ts'

/** Adds what an endpoint refuses, and over which earlier sequences it received backfill. */
export const refusals: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('endpoint')
      .addColumn('refused_from', 'bigint')
      .addColumn('refused_at_ms', 'bigint')
      .addColumn('backfill_earlier', text, (column) => column.notNull().defaultTo('[]'))
      .execute()
  },
}
