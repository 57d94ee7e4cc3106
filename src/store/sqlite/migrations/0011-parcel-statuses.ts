import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Adds a table of known statuses, so that a filter by an unknown status is detected without a full scan. */
export const parcelStatuses: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable('parcel_status')
      .addColumn('status', 'text', (column) => column.primaryKey().notNull())
      .modifyEnd(sql`without rowid`)
      .execute()
    await sql`insert into parcel_status select distinct latest_status from parcel where latest_status is not null limit 1000`.execute(db)
  },
}
