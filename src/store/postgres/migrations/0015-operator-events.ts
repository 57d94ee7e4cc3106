import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { text } from './text.ts'

/** Adds what operators are told and what they do: see the step of the same name on SQLite. */
export const operatorEvents: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createEvents(db)
    await createActions(db)
    await createTroubles(db)
    await db.schema.alterTable('endpoint').addColumn('alarmed_at_ms', 'bigint').execute()
    await db.schema
      .alterTable('job')
      .addColumn('end_told', 'smallint', (column) => column.notNull().defaultTo(0))
      .execute()
    await sql`update job set end_told = 1 where ended_at_ms is not null`.execute(db)
    await db.schema
      .createIndex('job_end_untold')
      .on('job')
      .column('id')
      .where(sql<boolean>`ended_at_ms is not null and end_told = 0`)
      .execute()
  },
}

async function createEvents(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('operator_event')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('event', text, (column) => column.notNull())
    .addColumn('detail', text, (column) => column.notNull())
    .execute()
  await db.schema.createIndex('operator_event_by_time').on('operator_event').columns(['at_ms', 'id']).execute()
  await db.schema.createIndex('operator_event_by_name').on('operator_event').columns(['event', 'at_ms', 'id']).execute()
}

async function createActions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('operator_action')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('by_kind', text, (column) => column.notNull())
    .addColumn('by_name', text, (column) => column.notNull())
    .addColumn('address', text)
    .addColumn('action', text, (column) => column.notNull())
    .addColumn('target_kind', text)
    .addColumn('target', text)
    .addColumn('detail', text, (column) => column.notNull())
    .execute()
  await db.schema.createIndex('operator_action_by_time').on('operator_action').columns(['at_ms', 'id']).execute()
}

async function createTroubles(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('trouble')
    .addColumn('subject', text, (column) => column.primaryKey())
    .addColumn('since_ms', 'bigint', (column) => column.notNull())
    .addColumn('count', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute()
  await db.schema
    .createTable('quarantine_count')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('reason', text, (column) => column.notNull())
    .addColumn('count', 'bigint', (column) => column.notNull())
    .execute()
}
