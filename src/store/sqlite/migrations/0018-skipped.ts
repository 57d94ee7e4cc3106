import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

const DELIVERED = 2

/** Finds deliveries that wait and are to be skipped, among all that wait. They are the waiting ones with a reason. */
export const skipped: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createIndex('delivery_skipped')
      .on('delivery')
      .columns(['state', 'endpoint_id'])
      .where(sql<boolean>`state < ${sql.lit(DELIVERED)} AND reason IS NOT NULL`)
      .execute()
  },
}
