import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Adds an index of pushes that were too old to be recorded. */
export const expiredPushes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.createIndex('inbox_expired').on('inbox').column('id').where(sql.ref('state'), '=', sql.lit(2)).execute()
  },
}
