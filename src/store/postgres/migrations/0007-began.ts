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
  'create index feed_backfill on feed (sequence) where payload_ref < 0',
]

export const began: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}
