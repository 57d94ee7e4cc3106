import { type Kysely, sql } from 'kysely'
import type { CarrierMemory } from '../../../domain/polling/carrier-memory.ts'
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
  const days = await callsBefore(db)
  await sql`insert into carrier_budget (id, days) values (1, ${days}::text::jsonb)`.execute(db)
}

/** The calls that the relay has made before it shared the budget, by day. A record that cannot be read holds up no start. */
async function callsBefore(db: Kysely<unknown>): Promise<string> {
  const { rows } = await sql<{ value: Uint8Array }>`select value from setting where name = 'carrier-memory'`.execute(db)
  try {
    const { days } = JSON.parse(new TextDecoder().decode(rows[0]?.value)) as CarrierMemory
    return JSON.stringify(Object.fromEntries(days.map(({ day, calls }) => [day, calls])))
  } catch {
    return '{}'
  }
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
