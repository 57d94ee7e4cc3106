import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The identifiers of erasures that a kill may interrupt: their parcels are gone, and other records may still name them. */
export const erasing: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql.raw('create table erasure (identifier text collate "C" primary key)').execute(db)
  },
}
