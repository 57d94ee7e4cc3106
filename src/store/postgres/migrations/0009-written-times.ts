import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** A time is served as it was written, so the column says more than whether there are milliseconds (see `store/instant-codec`). */
export const writtenTimes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('sighting')
      .alterColumn('has_ms', (column) => column.setDataType(sql`integer`))
      .execute()
  },
}
