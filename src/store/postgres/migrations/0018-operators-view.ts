import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import { text } from './text.ts'

/** What operators see of an endpoint: see the step of the same name on SQLite. */
export const operatorsView: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('failure')
      .addColumn('endpoint_id', 'bigint', (column) => column.notNull())
      .addColumn('count', 'bigint', (column) => column.notNull())
      .addColumn('first_at_ms', 'bigint', (column) => column.notNull())
      .addColumn('last_at_ms', 'bigint', (column) => column.notNull())
      .addColumn('delivery_id', 'bigint', (column) => column.notNull())
      .addColumn('status', 'integer')
      .addColumn('digest', text, (column) => column.notNull())
      .addColumn('reason', text)
      .addColumn('answer', 'bytea')
      .addPrimaryKeyConstraint('failure_key', ['endpoint_id', 'digest'])
      .execute()
    await db.schema.createIndex('failure_by_time').on('failure').columns(['endpoint_id', 'last_at_ms']).execute()
    await db.schema.alterTable('endpoint').addColumn('disabled_at_ms', 'bigint').execute()
    await db.schema.alterTable('endpoint').addColumn('disabled_by', text).execute()
  },
}
