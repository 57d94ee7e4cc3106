import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import { text } from './text.ts'

/** What replicas were taught about the carrier, until the poller has learnt it: a few rows, for seconds. */
export const lessons: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('lesson')
      .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
      .addColumn('body', text, (column) => column.notNull())
      .execute()
  },
}
