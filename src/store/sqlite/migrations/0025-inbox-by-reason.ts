import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Finds quarantined pushes by their reason, and dismissed ones. Only these pay for it: a push that is recorded is in neither index. */
export const inboxByReason: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.createIndex('inbox_by_reason').on('inbox').columns(['reason', 'id']).where(sql.ref('state'), '=', sql.lit(1)).execute()
    await db.schema.createIndex('inbox_dismissed').on('inbox').column('id').where(sql.ref('state'), '=', sql.lit(3)).execute()
  },
}
