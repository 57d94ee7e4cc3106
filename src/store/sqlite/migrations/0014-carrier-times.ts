import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Synchronized clocks differ by less. */
const CLOCKS_DIFFER_MS = 5 * 60_000

/**
 * The carrier's times, as written and as they count.
 *
 * A time is served as it was written, so `sighting.has_ms` says more than whether there are milliseconds (see `store/instant-codec`). The column
 * holds that as it is; versions before this step would read such times back as others, and do not open the store.
 *
 * Where the newest entry is dated after the relay learnt of it, it counts from then. Of entries that are there, that was when the parcel was last
 * heard of, or before; their polls were planned by the carrier's time, perhaps years ahead, so one is due now.
 */
export const carrierTimes: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('parcel').addColumn('latest_learnt_at_ms', 'integer').execute()
    await sql`UPDATE parcel SET latest_learnt_at_ms = heard_at_ms WHERE latest_at_ms > heard_at_ms + ${CLOCKS_DIFFER_MS}`.execute(db)
    await sql`UPDATE parcel SET next_poll_at_ms = heard_at_ms WHERE latest_learnt_at_ms IS NOT NULL AND next_poll_at_ms > heard_at_ms`.execute(
      db,
    )
  },
}
