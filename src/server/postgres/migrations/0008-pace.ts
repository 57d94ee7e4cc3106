import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** See the step for SQLite. A constant default rewrites no row. */
export const pace: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table endpoint add column pace text collate "C"`.execute(db)
    await sql`alter table delivery add column limited integer default 0 not null`.execute(db)
  },
}
