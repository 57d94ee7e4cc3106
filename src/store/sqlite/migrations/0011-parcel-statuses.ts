import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** So that a question for parcels of a status that no parcel ever had is told from one that no parcel has now, without a look at all of them. */
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
