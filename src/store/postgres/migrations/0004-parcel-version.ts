import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The version of what is served about a parcel, by which each replica finds out whether an answer it has cached is still true. No index may name it. */
export const parcelVersion: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('parcel')
      .addColumn('version', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute()
  },
}
