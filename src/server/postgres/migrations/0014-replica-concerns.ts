import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What is wrong at a replica and only it can know, as JSON: each replica writes it with the renewal of its lease. Null: an older version. */
export const replicaConcerns: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table replica add column concerns text collate "C"`.execute(db)
  },
}
