import { type Kysely, sql } from 'kysely'
import { text } from './text.ts'

/** The part of the first migration that is about endpoints, their deliveries, and jobs. */
export async function createDeliveryTables(db: Kysely<unknown>): Promise<void> {
  await createEndpoint(db)
  await createComposedEvent(db)
  await createDelivery(db)
  await indexDelivery(db)
  await createAttempt(db)
  await createJob(db)
}

async function createEndpoint(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('endpoint')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
    .addColumn('succeeded_at_ms', 'bigint')
    .addColumn('failing_since_ms', 'bigint')
    .addColumn('failed_for_ms', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('probe_at_ms', 'bigint')
    .addColumn('woken_at_ms', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('queued_to', 'bigint')
    .addColumn('backfill_from', 'bigint')
    .addColumn('backfill_to', 'bigint')
    .addColumn('removed_at_ms', 'bigint')
    .addColumn('probes_failed', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('round', 'integer', (column) => column.notNull().defaultTo(1))
    .addColumn('name', text, (column) => column.notNull())
    .addColumn('origin', text, (column) => column.notNull())
    .addColumn('settings', text, (column) => column.notNull())
    .addColumn('disabled', text)
    .addColumn('failed_parcels', text, (column) => column.notNull().defaultTo('[]'))
    .addColumn('sealed_keys', text)
    // A few rows that every round of deliveries updates: with room on the page no index is touched, and a vacuum does not wait for the 50 dead rows
    // that are the default, many times the table.
    .modifyEnd(sql`with (fillfactor = 50, autovacuum_vacuum_threshold = 20)`)
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
    .addColumn('sequence', 'bigint', (column) => column.primaryKey())
    .addColumn('body', 'bytea', (column) => column.notNull())
    .execute()
}

async function createDelivery(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('delivery')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
    .addColumn('endpoint_id', 'bigint', (column) => column.notNull())
    .addColumn('parcel_id', 'bigint', (column) => column.notNull())
    .addColumn('sequence', 'bigint', (column) => column.notNull())
    .addColumn('previous_sequence', 'bigint', (column) => column.notNull())
    .addColumn('inbox_id', 'bigint')
    .addColumn('queued_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('first_failed_at_ms', 'bigint')
    .addColumn('next_attempt_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('settled_at_ms', 'bigint')
    .addColumn('accepted_at_ms', 'bigint')
    .addColumn('accepted_duration_ms', 'bigint')
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('spared', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('round', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('accepted_status', 'integer')
    .addColumn('state', 'smallint', (column) => column.notNull())
    .addColumn('reason', text)
    // No room is kept on its pages: every update moves a row from one partial index to another, so all its indexes are written anyhow. Vacuumed at
    // 1 %: what was delivered lies dead at the front of `delivery_due`, which is read every two seconds.
    .modifyEnd(sql`with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.02)`)
    .execute()
}

async function indexDelivery(db: Kysely<unknown>): Promise<void> {
  await db.schema.createIndex('delivery_by_parcel').unique().on('delivery').columns(['endpoint_id', 'parcel_id', 'sequence']).execute()
  await db.schema
    .createIndex('delivery_due')
    .on('delivery')
    .columns(['endpoint_id', 'round', 'next_attempt_at_ms', 'id'])
    .where(sql.ref('state'), '=', sql.lit(1))
    .execute()
  await db.schema
    .createIndex('delivery_waiting')
    .on('delivery')
    .columns(['endpoint_id', 'parcel_id', 'sequence', 'state', 'queued_at_ms'])
    .where(sql.ref('state'), '<', sql.lit(2))
    .execute()
  for (const [name, column] of [
    ['delivery_ended', 'sequence'],
    ['delivery_ended_by_time', 'queued_at_ms'],
  ] as const) {
    await db.schema
      .createIndex(name)
      .on('delivery')
      .columns(['endpoint_id', 'state', column, 'id'])
      .where(sql.ref('state'), '>=', sql.lit(2))
      .execute()
  }
}

async function createAttempt(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('attempt')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
    .addColumn('delivery_id', 'bigint', (column) => column.notNull())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('duration_ms', 'bigint', (column) => column.notNull())
    .addColumn('status', 'integer')
    .addColumn('reason', text)
    .addColumn('answer', 'bytea')
    .execute()
  await db.schema.createIndex('attempt_by_delivery').on('attempt').columns(['delivery_id', 'id']).execute()
}

async function createJob(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('job')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
    .addColumn('done', 'bigint', (column) => column.notNull())
    .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('started_at_ms', 'bigint')
    .addColumn('ended_at_ms', 'bigint')
    .addColumn('kind', text, (column) => column.notNull())
    .addColumn('task', text, (column) => column.notNull())
    .addColumn('started_by', text, (column) => column.notNull())
    .addColumn('state', text, (column) => column.notNull())
    .addColumn('place', text)
    .addColumn('failure', text)
    .execute()
  await db.schema.createIndex('job_unended').on('job').column('id').where(sql.ref('ended_at_ms'), 'is', null).execute()
}
