import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Adds what operators are told and what they do: events, troubles that last, and orders. Jobs that have ended before are not told any more. */
export const operatorEvents: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createEvents(db)
    await createActions(db)
    await createTroubles(db)
    await db.schema.alterTable('endpoint').addColumn('alarmed_at_ms', 'integer').execute()
    await db.schema
      .alterTable('job')
      .addColumn('end_told', 'integer', (column) => column.notNull().defaultTo(0))
      .execute()
    await sql`UPDATE job SET end_told = 1 WHERE ended_at_ms IS NOT NULL`.execute(db)
    await db.schema
      .createIndex('job_end_untold')
      .on('job')
      .column('id')
      .where(sql<boolean>`ended_at_ms IS NOT NULL AND end_told = 0`)
      .execute()
  },
}

async function createEvents(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('operator_event')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('at_ms', 'integer', (column) => column.notNull())
    .addColumn('event', 'text', (column) => column.notNull())
    .addColumn('detail', 'text', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('operator_event_by_time').on('operator_event').columns(['at_ms', 'id']).execute()
  await db.schema.createIndex('operator_event_by_name').on('operator_event').columns(['event', 'at_ms', 'id']).execute()
}

async function createActions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('operator_action')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('at_ms', 'integer', (column) => column.notNull())
    .addColumn('by_kind', 'text', (column) => column.notNull())
    .addColumn('by_name', 'text', (column) => column.notNull())
    .addColumn('address', 'text')
    .addColumn('action', 'text', (column) => column.notNull())
    .addColumn('target_kind', 'text')
    .addColumn('target', 'text')
    .addColumn('detail', 'text', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('operator_action_by_time').on('operator_action').columns(['at_ms', 'id']).execute()
}

async function createTroubles(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('trouble')
    .addColumn('subject', 'text', (column) => column.primaryKey())
    .addColumn('since_ms', 'integer', (column) => column.notNull())
    .addColumn('count', 'integer', (column) => column.notNull().defaultTo(0))
    .modifyEnd(sql`without rowid`)
    .execute()
  await db.schema
    .createTable('quarantine_count')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('at_ms', 'integer', (column) => column.notNull())
    .addColumn('reason', 'text', (column) => column.notNull())
    .addColumn('count', 'integer', (column) => column.notNull())
    .execute()
}
