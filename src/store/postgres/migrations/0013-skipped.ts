import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Finds deliveries that wait and are to be skipped: see the step of the same name on SQLite. */
export const skipped: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createIndex('delivery_skipped')
      .on('delivery')
      .columns(['state', 'endpoint_id'])
      .where(sql<boolean>`state < 2 and reason is not null`)
      .execute()
  },
}
