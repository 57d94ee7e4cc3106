import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** A join finds the events of a sighting by this index. It leaves out the most, whose number is that of their sighting. */
const STEP = 'create index feed_renumbered on feed (entry) where entry <> sequence and payload_ref is not null'

export const renumberedEvents: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql.raw(STEP).execute(db)
  },
}
