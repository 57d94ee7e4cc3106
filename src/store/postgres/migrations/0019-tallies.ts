import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import { text } from './text.ts'

/** Adds what was counted by the hour and by the day: see the step of the same name on SQLite. */
export const tallies: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('tally')
      .addColumn('span', text, (column) => column.notNull())
      .addColumn('kind', text, (column) => column.notNull())
      .addColumn('from_ms', 'bigint', (column) => column.notNull())
      .addColumn('counts', text, (column) => column.notNull())
      .addPrimaryKeyConstraint('tally_key', ['span', 'kind', 'from_ms'])
      .execute()
    await db.schema.createIndex('tally_by_time').on('tally').columns(['span', 'from_ms']).execute()
  },
}
