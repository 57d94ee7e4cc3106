import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** So that pushes that were too old to be recorded are found among all that were. */
export const expiredPushes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.createIndex('inbox_expired').on('inbox').column('id').where(sql.ref('state'), '=', sql.lit(2)).execute()
  },
}
