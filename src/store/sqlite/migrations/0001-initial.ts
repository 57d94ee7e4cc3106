import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

export const initial: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createSetting(db)
    await createParcel(db)
    await createIdentifier(db)
    await createContent(db)
    await createSighting(db)
    await createAnswer(db)
    await createInbox(db)
    await createFeed(db)
    await createExpectedPush(db)
    await createLanguageAsked(db)
    await createAudit(db)
  },
}

async function createSetting(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('setting')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('value', 'blob', (column) => column.notNull())
    .execute()
}

async function createParcel(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('parcel')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('watched_at_ms', 'integer')
    .addColumn('first_pushed_at_ms', 'integer')
    .addColumn('revived_at_ms', 'integer', (column) => column.notNull())
    .addColumn('entry_count', 'integer', (column) => column.notNull())
    .addColumn('latest_status', 'text')
    .addColumn('latest_at_ms', 'integer')
    .addColumn('heard_at_ms', 'integer')
    .addColumn('checked_at_ms', 'integer')
    .addColumn('failures', 'integer', (column) => column.notNull())
    .addColumn('next_poll_at_ms', 'integer')
    .addColumn('stopped', 'text')
    .addColumn('is_full', 'integer', (column) => column.notNull())
    .execute()
  await db.schema
    .createIndex('parcel_by_next_poll')
    .on('parcel')
    .column('next_poll_at_ms')
    .where(sql.ref('next_poll_at_ms'), 'is not', null)
    .execute()
}

async function createIdentifier(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('identifier')
    .addColumn('value', 'text', (column) => column.primaryKey())
    .addColumn('parcel_id', 'integer', (column) => column.notNull())
    .addColumn('is_tracking_id', 'integer', (column) => column.notNull())
    .addColumn('refused_at_ms', 'integer')
    .modifyEnd(sql`without rowid`)
    .execute()
  // A covering index: a poll reads identifiers from it alone, in the order to try them.
  await db.schema.createIndex('identifier_by_parcel').on('identifier').columns(['parcel_id', 'is_tracking_id', 'refused_at_ms']).execute()
}

async function createContent(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('content')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('digest', 'blob', (column) => column.notNull().unique())
    .addColumn('json', 'text', (column) => column.notNull())
    .execute()
}

async function createSighting(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('sighting')
    .addColumn('parcel_id', 'integer', (column) => column.notNull())
    .addColumn('at_ms', 'integer', (column) => column.notNull())
    .addColumn('has_ms', 'integer', (column) => column.notNull())
    .addColumn('content_id', 'integer', (column) => column.notNull())
    .addColumn('listing', 'integer', (column) => column.notNull())
    .addColumn('ordinal', 'integer', (column) => column.notNull())
    .addColumn('asked_at_ms', 'integer', (column) => column.notNull())
    .addColumn('sequence', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('sighting_key', ['parcel_id', 'at_ms', 'has_ms', 'content_id', 'listing', 'ordinal'])
    .modifyEnd(sql`without rowid`)
    .execute()
}

async function createAnswer(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('answer')
    .addColumn('parcel_id', 'integer', (column) => column.notNull())
    .addColumn('language', 'text', (column) => column.notNull())
    .addColumn('digest', 'blob', (column) => column.notNull())
    .addColumn('asked_at_ms', 'integer', (column) => column.notNull())
    .addColumn('entry_count', 'integer', (column) => column.notNull())
    .addColumn('is_flawed', 'integer', (column) => column.notNull())
    .addColumn('decides_order', 'integer', (column) => column.notNull())
    .addColumn('head', 'text', (column) => column.notNull())
    .addColumn('body', 'blob')
    .addPrimaryKeyConstraint('answer_key', ['parcel_id', 'language', 'digest'])
    .execute()
}

async function createInbox(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('inbox')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('digest', 'blob', (column) => column.notNull())
    .addColumn('received_at_ms', 'integer', (column) => column.notNull())
    .addColumn('key_index', 'integer', (column) => column.notNull())
    .addColumn('content_encoding', 'text')
    .addColumn('state', 'integer', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('parcel_id', 'integer', (column) => column.notNull())
    .addColumn('duplicates', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('body', 'blob')
    .execute()
  await db.schema.createIndex('inbox_by_digest').unique().on('inbox').columns(['parcel_id', 'digest']).execute()
  await db.schema.createIndex('inbox_quarantined').on('inbox').column('id').where(sql.ref('state'), '=', sql.lit(1)).execute()
}

async function createFeed(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('feed')
    .addColumn('sequence', 'integer', (column) => column.primaryKey())
    .addColumn('kind', 'integer', (column) => column.notNull())
    .addColumn('parcel_id', 'integer', (column) => column.notNull())
    .addColumn('entry', 'integer', (column) => column.notNull())
    .addColumn('carries', 'integer')
    .execute()
  await db.schema
    .createIndex('feed_carried_later')
    .on('feed')
    .column('entry')
    .where(sql<boolean>`carries is not null and kind != 0`)
    .execute()
}

async function createExpectedPush(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('expected_push')
    .addColumn('entry', 'integer', (column) => column.primaryKey())
    .addColumn('parcel_id', 'integer', (column) => column.notNull())
    .addColumn('event_at_ms', 'integer', (column) => column.notNull())
    .addColumn('found_at_ms', 'integer', (column) => column.notNull())
    .addColumn('due_at_ms', 'integer', (column) => column.notNull())
    .execute()
  await db.schema.createIndex('expected_push_by_due').on('expected_push').column('due_at_ms').execute()
}

async function createLanguageAsked(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('language_asked')
    .addColumn('parcel_id', 'integer', (column) => column.notNull())
    .addColumn('language', 'text', (column) => column.notNull())
    .addColumn('sequence', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('language_asked_key', ['parcel_id', 'language'])
    .execute()
}

async function createAudit(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('audit')
    .addColumn('sequence', 'integer', (column) => column.primaryKey())
    .addColumn('at_ms', 'integer', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('parcel_id', 'integer', (column) => column.notNull())
    .addColumn('detail', 'text', (column) => column.notNull())
    .execute()
}
