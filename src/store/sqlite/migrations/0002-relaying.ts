import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const relaying: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createEndpoint(db)
    await createComposedEvent(db)
    await createDelivery(db)
    await createAttempt(db)
  },
}

async function createEndpoint(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('endpoint')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('origin', 'text', (column) => column.notNull())
    .addColumn('settings', 'text', (column) => column.notNull())
    .addColumn('disabled', 'text')
    .addColumn('succeeded_at_ms', 'integer')
    .addColumn('failing_since_ms', 'integer')
    .addColumn('sealed_keys', 'text')
    .addColumn('queued_to', 'integer')
    .addColumn('removed_at_ms', 'integer')
    .execute()
  await db.schema
    .createIndex('endpoint_by_name')
    .unique()
    .on('endpoint')
    .column('name')
    .where(sql.ref('removed_at_ms'), 'is', null)
    .execute()
}

async function createComposedEvent(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('composed_event')
    .addColumn('sequence', 'integer', (column) => column.primaryKey())
    .addColumn('body', 'blob', (column) => column.notNull())
    .execute()
}

async function createDelivery(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('delivery')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('endpoint_id', 'integer', (column) => column.notNull())
    .addColumn('parcel_id', 'integer', (column) => column.notNull())
    .addColumn('sequence', 'integer', (column) => column.notNull())
    .addColumn('previous_sequence', 'integer', (column) => column.notNull())
    .addColumn('inbox_id', 'integer')
    .addColumn('state', 'integer', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('queued_at_ms', 'integer', (column) => column.notNull())
    .addColumn('first_failed_at_ms', 'integer')
    .addColumn('next_attempt_at_ms', 'integer', (column) => column.notNull())
    .addColumn('settled_at_ms', 'integer')
    .addColumn('accepted_at_ms', 'integer')
    .addColumn('accepted_duration_ms', 'integer')
    .addColumn('accepted_status', 'integer')
    .execute()
  await db.schema.createIndex('delivery_by_parcel').unique().on('delivery').columns(['endpoint_id', 'parcel_id', 'sequence']).execute()
  await db.schema
    .createIndex('delivery_due')
    .on('delivery')
    .columns(['endpoint_id', 'next_attempt_at_ms'])
    .where(sql.ref('state'), '=', sql.lit(1))
    .execute()
}

async function createAttempt(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('attempt')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('delivery_id', 'integer', (column) => column.notNull())
    .addColumn('at_ms', 'integer', (column) => column.notNull())
    .addColumn('duration_ms', 'integer', (column) => column.notNull())
    .addColumn('status', 'integer')
    .addColumn('reason', 'text')
    .addColumn('answer', 'blob')
    .execute()
  await db.schema.createIndex('attempt_by_delivery').on('attempt').column('delivery_id').execute()
}
