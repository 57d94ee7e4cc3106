import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { createDeliveryTables } from './0001-delivery-tables.ts'
import { text } from './text.ts'

/**
 * The tables and columns of the SQLite schema after its migration 0011, so that one row codec serves both engines. Differences: columns stand by
 * size, widest first, since PostgreSQL pads them; indexes end in `id` where a list goes on by it, which SQLite adds by itself; and `counter` keeps
 * what SQLite keeps in `sqlite_sequence` and in `setting`.
 */
export const initial: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createSetting(db)
    await createCounter(db)
    await createLease(db)
    await createParcel(db)
    await createParcelStatus(db)
    await createIdentifier(db)
    await createContent(db)
    await createSighting(db)
    await createAnswer(db)
    await createInbox(db)
    await createFeed(db)
    await createExpectedPush(db)
    await createLanguageAsked(db)
    await createAudit(db)
    await createDeliveryTables(db)
  },
}

async function createSetting(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('setting')
    .addColumn('name', text, (column) => column.primaryKey())
    .addColumn('value', 'bytea', (column) => column.notNull())
    .execute()
}

async function createCounter(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('counter')
    .addColumn('name', text, (column) => column.primaryKey())
    .addColumn('value', 'bigint', (column) => column.notNull())
    .addColumn('base', 'bigint', (column) => column.notNull())
    .addColumn('version', 'bigint', (column) => column.notNull())
    // Updated by every commit: the room keeps its versions on one page, which any reader prunes, and a vacuum comes long before a fifth of a table
    // of one row would call for it.
    .modifyEnd(sql`with (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0)`)
    .execute()
  await sql`insert into counter (name, value, base, version) values ('sequence', 0, 0, 0), ('settings', 0, 0, 0), ('polls', 0, 0, 0)`.execute(
    db,
  )
  // Each value stands for a run of as many numbers as the step is long. A batch takes the numbers of its new parcels in one run, so that of two parcels the
  // older has the lower number; a replica takes the numbers of pushes for a while, so that they have few gaps.
  await sql`create sequence parcel_numbers increment by 10000 start with 10000`.execute(db)
  await sql`create sequence inbox_numbers increment by 10000 start with 10000`.execute(db)
}

/** Who does what must be done by one relay alone, and until when, by the server's clock. */
async function createLease(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('lease')
    .addColumn('role', text, (column) => column.primaryKey())
    .addColumn('holder', text, (column) => column.notNull())
    .addColumn('epoch', 'bigint', (column) => column.notNull())
    .addColumn('until_ms', 'bigint', (column) => column.notNull())
    .modifyEnd(sql`with (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0)`)
    .execute()
}

async function createParcel(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('parcel')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('watched_at_ms', 'bigint')
    .addColumn('first_pushed_at_ms', 'bigint')
    .addColumn('revived_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('latest_at_ms', 'bigint')
    .addColumn('heard_at_ms', 'bigint')
    .addColumn('checked_at_ms', 'bigint')
    .addColumn('next_poll_at_ms', 'bigint')
    .addColumn('entry_count', 'integer', (column) => column.notNull())
    .addColumn('failures', 'integer', (column) => column.notNull())
    .addColumn('is_full', 'smallint', (column) => column.notNull())
    .addColumn('latest_status', text)
    .addColumn('stopped', text)
    // Every observation updates a row, most without a change of its schedule: with room on its page the update touches no index. No index may name
    // another column that changes. Vacuumed at 2 %, since a fifth of a large table is too many dead rows to meet in the order of falling due.
    .modifyEnd(sql`with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)`)
    .execute()
  await db.schema
    .createIndex('parcel_by_next_poll')
    .on('parcel')
    .columns(['next_poll_at_ms', 'id'])
    .where(sql.ref('next_poll_at_ms'), 'is not', null)
    .execute()
  await db.schema
    .createIndex('parcel_by_stopped')
    .on('parcel')
    .columns(['stopped', 'id'])
    .where(sql.ref('next_poll_at_ms'), 'is', null)
    .execute()
}

async function createParcelStatus(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('parcel_status')
    .addColumn('status', text, (column) => column.notNull())
    .execute()
  // By its hash: a carrier's status may be longer than an index entry, and a key that refuses it would stop the recording.
  await sql`create unique index parcel_status_key on parcel_status (hashtextextended(status, 0))`.execute(db)
}

async function createIdentifier(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('identifier')
    .addColumn('parcel_id', 'bigint', (column) => column.notNull())
    .addColumn('refused_at_ms', 'bigint')
    .addColumn('is_tracking_id', 'smallint', (column) => column.notNull())
    .addColumn('value', text, (column) => column.primaryKey())
    .execute()
  await db.schema.createIndex('identifier_by_parcel').on('identifier').columns(['parcel_id', 'is_tracking_id', 'refused_at_ms']).execute()
}

async function createContent(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('content')
    .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
    .addColumn('digest', 'bytea', (column) => column.notNull().unique())
    .addColumn('json', text, (column) => column.notNull())
    .execute()
}

async function createSighting(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sighting')
    .addColumn('parcel_id', 'bigint', (column) => column.notNull())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('content_id', 'bigint', (column) => column.notNull())
    .addColumn('listing', 'bigint', (column) => column.notNull())
    .addColumn('asked_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('sequence', 'bigint', (column) => column.notNull())
    .addColumn('told', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('ordinal', 'integer', (column) => column.notNull())
    .addColumn('has_ms', 'smallint', (column) => column.notNull())
    .addColumn('extra', text)
    .addPrimaryKeyConstraint('sighting_key', ['parcel_id', 'at_ms', 'has_ms', 'content_id', 'listing', 'ordinal'])
    .execute()
}

async function createAnswer(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('answer')
    .addColumn('parcel_id', 'bigint', (column) => column.notNull())
    .addColumn('asked_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('entry_count', 'integer', (column) => column.notNull())
    .addColumn('is_flawed', 'smallint', (column) => column.notNull())
    .addColumn('decides_order', 'smallint', (column) => column.notNull())
    .addColumn('language', text, (column) => column.notNull())
    .addColumn('digest', 'bytea', (column) => column.notNull())
    .addColumn('head', text, (column) => column.notNull())
    .addColumn('body', 'bytea')
    .addPrimaryKeyConstraint('answer_key', ['parcel_id', 'language', 'digest'])
    .execute()
}

async function createInbox(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('inbox')
    .addColumn('id', 'bigint', (column) => column.primaryKey())
    .addColumn('parcel_id', 'bigint', (column) => column.notNull())
    .addColumn('received_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('duplicates', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('key_index', 'integer', (column) => column.notNull())
    .addColumn('state', 'smallint', (column) => column.notNull())
    .addColumn('digest', 'bytea', (column) => column.notNull())
    .addColumn('content_encoding', text)
    .addColumn('reason', text)
    .addColumn('body', 'bytea')
    .execute()
  await db.schema.createIndex('inbox_by_digest').unique().on('inbox').columns(['parcel_id', 'digest']).execute()
  await db.schema.createIndex('inbox_quarantined').on('inbox').column('id').where(sql.ref('state'), '=', sql.lit(1)).execute()
  await db.schema.createIndex('inbox_expired').on('inbox').column('id').where(sql.ref('state'), '=', sql.lit(2)).execute()
}

async function createFeed(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('feed')
    .addColumn('sequence', 'bigint', (column) => column.primaryKey())
    .addColumn('parcel_id', 'bigint', (column) => column.notNull())
    .addColumn('entry', 'bigint', (column) => column.notNull())
    .addColumn('carries', 'bigint')
    .addColumn('told_before', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('kind', 'smallint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('feed_joins').on('feed').columns(['entry', 'sequence']).where(sql.ref('kind'), '=', sql.lit(4)).execute()
}

async function createExpectedPush(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('expected_push')
    .addColumn('entry', 'bigint', (column) => column.primaryKey())
    .addColumn('parcel_id', 'bigint', (column) => column.notNull())
    .addColumn('event_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('found_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('due_at_ms', 'bigint', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('expected_push_by_due').on('expected_push').columns(['due_at_ms', 'entry']).execute()
}

async function createLanguageAsked(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('language_asked')
    .addColumn('parcel_id', 'bigint', (column) => column.notNull())
    .addColumn('sequence', 'bigint', (column) => column.notNull())
    .addColumn('language', text, (column) => column.notNull())
    .addPrimaryKeyConstraint('language_asked_key', ['parcel_id', 'language'])
    .execute()
}

async function createAudit(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('audit')
    .addColumn('sequence', 'bigint', (column) => column.primaryKey())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('parcel_id', 'bigint', (column) => column.notNull())
    .addColumn('kind', text, (column) => column.notNull())
    .addColumn('detail', text, (column) => column.notNull())
    .execute()
}
