import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Finds deliveries by when they were queued, whatever has become of them. */
export const deliveriesByTime: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.createIndex('delivery_by_time').on('delivery').column('queued_at_ms').execute()
  },
}
