import { type Kysely, sql } from 'kysely'
import { text } from './text.ts'

/** What the replicas share about the carrier: the budget of calls, the token, and who asks about what. */
export const carrier = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createBudget(db)
    await createToken(db)
    await createFlight(db)
  },
}

/** Calls and waits in flight are in the row itself: a statement that waited for the row would see other tables as they were before it waited. */
async function createBudget(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('carrier_budget')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('seen_ms', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('offset_ms', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('due_us', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('paused_until_ms', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('last_day', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('days', 'jsonb', (column) => column.notNull().defaultTo('{}'))
    .addColumn('calls', 'jsonb', (column) => column.notNull().defaultTo('{}'))
    .addColumn('app_waits', 'jsonb', (column) => column.notNull().defaultTo('{}'))
    .execute()
  await sql`insert into carrier_budget (id) values (1)`.execute(db)
}

async function createToken(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('carrier_token')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('version', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('refused_until_ms', 'bigint')
    .addColumn('paused_until_ms', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('holder_until_ms', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('tries', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('troubles', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('sealed', text)
    .addColumn('mark', text)
    .addColumn('holder', text)
    .execute()
  await sql`insert into carrier_token (id) values (1)`.execute(db)
}

async function createFlight(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('flight')
    .addColumn('key', text, (column) => column.primaryKey())
    .addColumn('until_ms', 'bigint', (column) => column.notNull())
    .addColumn('retry_after_ms', 'bigint')
    .addColumn('holder', text, (column) => column.notNull())
    .addColumn('outcome', text)
    .execute()
  await db.schema.createIndex('flight_by_time').on('flight').column('until_ms').execute()
}
