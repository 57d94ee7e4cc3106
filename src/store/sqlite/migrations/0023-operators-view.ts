import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * What operators see of an endpoint: its failures, equal ones counted together, and since when and by whom it is disabled. Of what was before,
 * neither is known.
 */
export const operatorsView: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('failure')
      .addColumn('endpoint_id', 'integer', (column) => column.notNull())
      .addColumn('digest', 'text', (column) => column.notNull())
      .addColumn('status', 'integer')
      .addColumn('reason', 'text')
      .addColumn('answer', 'blob')
      .addColumn('count', 'integer', (column) => column.notNull())
      .addColumn('first_at_ms', 'integer', (column) => column.notNull())
      .addColumn('last_at_ms', 'integer', (column) => column.notNull())
      .addColumn('delivery_id', 'integer', (column) => column.notNull())
      .addPrimaryKeyConstraint('failure_key', ['endpoint_id', 'digest'])
      .modifyEnd(sql`without rowid`)
      .execute()
    await db.schema.createIndex('failure_by_time').on('failure').columns(['endpoint_id', 'last_at_ms']).execute()
    await db.schema.alterTable('endpoint').addColumn('disabled_at_ms', 'integer').execute()
    await db.schema.alterTable('endpoint').addColumn('disabled_by', 'text').execute()
  },
}
