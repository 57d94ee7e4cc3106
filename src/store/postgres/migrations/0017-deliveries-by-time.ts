import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Finds deliveries by when they were queued: see the step of the same name on SQLite. */
export const deliveriesByTime: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.createIndex('delivery_by_time').on('delivery').columns(['queued_at_ms', 'id']).execute()
  },
}
