import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** When the config of a replica took effect, by a start or a reload; null: at its start. A replica that was declared dead and comes back has the time it had. */
export const configuredAt: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('replica').addColumn('configured_at_ms', 'bigint').execute()
  },
}
