import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** `queued_lived_ms` and the index serve retention: how old a delivery is that was queued again, and which pushes may be sent again. */
const CHANGES = [
  'alter table answer add column listed blob',
  'alter table delivery add column queued_lived_ms integer',
  'create index delivery_replayable on delivery (inbox_id) where state >= 3 and inbox_id is not null',
]

export const lastingOrder: Migration = {
  async up(db) {
    for (const change of CHANGES) await sql.raw(change).execute(db)
  },
}
