import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Endpoints that exist already count as begun when the first event that they were to be sent was recorded. If the feed no longer has it, the
 * oldest event in the feed counts. The time is taken from the first such event whose parcel was neither joined nor erased.
 */
const STATEMENTS = [
  'alter table sighting add column tellings text',
  'alter table feed add column earlier_tellings text',
  'alter table endpoint add column began_at_ms integer default 0 not null',
  `update endpoint set began_at_ms = coalesce(
    (select sighting.learnt_at_ms from feed cross join sighting
      where sighting.parcel_id = feed.parcel_id and sighting.sequence = feed.entry
        and feed.kind = 0 and feed.sequence >= endpoint.first_sequence and sighting.learnt_at_ms is not null
      order by feed.sequence limit 1),
    cast(unixepoch('now', 'subsec') * 1000 as integer))`,
  'drop index feed_backfill',
  // Replays of what an endpoint had missed.
  `update job set state = 'cancelled', failure = 'Events that an endpoint never received are no longer replayed: an endpoint is sent everything that happened since it began.', ended_at_ms = cast(unixepoch('now', 'subsec') * 1000 as integer)
    where ended_at_ms is null and kind = 'replay' and task like '%"missing":%'`,
]

export const began: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
