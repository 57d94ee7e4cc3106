import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Synchronized clocks differ by less. */
const CLOCKS_DIFFER_MS = 5 * 60_000

/** The carrier's times, as written and as they count: see the step of the same name on SQLite. */
export const carrierTimes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable('sighting')
      .alterColumn('has_ms', (column) => column.setDataType(sql`integer`))
      .execute()
    await db.schema.alterTable('parcel').addColumn('latest_learnt_at_ms', 'bigint').execute()
    await sql`update parcel set latest_learnt_at_ms = heard_at_ms where latest_at_ms > heard_at_ms + ${sql.lit(CLOCKS_DIFFER_MS)}`.execute(
      db,
    )
    await sql`update parcel set next_poll_at_ms = heard_at_ms where latest_learnt_at_ms is not null and next_poll_at_ms > heard_at_ms`.execute(
      db,
    )
  },
}
