import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** See the SQLite step. An older replica that still runs adds endpoints without `began_at_ms`: these begin when they are added. */
const STATEMENTS = [
  'alter table sighting add column tellings text collate "C"',
  'alter table feed add column earlier_tellings text collate "C"',
  'alter table endpoint add column began_at_ms bigint not null default (extract(epoch from clock_timestamp()) * 1000)::bigint',
  `update endpoint set began_at_ms = coalesce(
    (select sighting.learnt_at_ms from feed inner join sighting on sighting.parcel_id = feed.parcel_id and sighting.sequence = feed.entry
      where feed.kind = 0 and feed.sequence >= endpoint.first_sequence and sighting.learnt_at_ms is not null
      order by feed.sequence limit 1),
    began_at_ms)`,
  'drop index feed_backfill',
  `update job set state = 'cancelled', failure = 'Events that an endpoint never received are no longer replayed: an endpoint is sent everything that happened since it began.', ended_at_ms = (extract(epoch from clock_timestamp()) * 1000)::bigint
    where ended_at_ms is null and kind = 'replay' and task like '%"missing":%'`,
]

export const began: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
