import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The pace of an endpoint that limits us, and how often each delivery was refused so. */
export const pace: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table endpoint add column pace text`.execute(db)
    await sql`alter table delivery add column limited integer default 0 not null`.execute(db)
  },
}
