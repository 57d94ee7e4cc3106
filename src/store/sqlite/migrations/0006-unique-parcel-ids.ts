import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Stops reusing the ids of joined parcels, because the feed, the audit trail and `language_asked` still name them. SQLite allows AUTOINCREMENT
 * only when a table is created, so this recreates the table.
 */
export const uniqueParcelIds: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('counted_parcel')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
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
    await sql`INSERT INTO counted_parcel SELECT * FROM parcel ORDER BY id`.execute(db)
    await db.schema.dropTable('parcel').execute()
    await db.schema.alterTable('counted_parcel').renameTo('parcel').execute()
    await db.schema
      .createIndex('parcel_by_next_poll')
      .on('parcel')
      .column('next_poll_at_ms')
      .where(sql.ref('next_poll_at_ms'), 'is not', null)
      .execute()
    await db.schema.createIndex('parcel_by_stopped').on('parcel').column('stopped').where(sql.ref('next_poll_at_ms'), 'is', null).execute()

    await sql`DELETE FROM sqlite_sequence WHERE name = 'parcel'`.execute(db)
    await sql`
      INSERT INTO sqlite_sequence (name, seq) SELECT 'parcel', max(
        coalesce((SELECT max(id) FROM parcel), 0),
        coalesce((SELECT max(parcel_id) FROM feed), 0),
        coalesce((SELECT max(entry) FROM feed WHERE kind = 4), 0),
        coalesce((SELECT max(parcel_id) FROM audit), 0),
        coalesce((SELECT max(parcel_id) FROM language_asked), 0)
      )`.execute(db)
  },
}
