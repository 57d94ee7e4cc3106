import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Adds an index for lists of parcels that are no longer polled. */
export const parcelLists: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.createIndex('parcel_by_stopped').on('parcel').column('stopped').where(sql.ref('next_poll_at_ms'), 'is', null).execute()
  },
}
