import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/* Only append to this file: after the first release, a released step never changes (decision 0004). */

function changes(...statements: readonly string[]): Migration {
  return {
    async up(db) {
      for (const statement of statements) await sql.raw(statement).execute(db)
    },
  }
}

/** The identifiers of erasures that a kill may interrupt: their parcels are gone, and other records may still name them. */
export const erasing = changes('create table erasure (identifier text collate "C" primary key)')

/** `queued_lived_ms` and the index serve retention: how old a delivery is that was queued again, and which pushes may be sent again. */
export const lastingOrder = changes(
  'alter table answer add column listed bytea',
  'alter table delivery add column queued_lived_ms bigint',
  'create index delivery_replayable on delivery (inbox_id) where state >= 3 and inbox_id is not null',
)

/** See the SQLite step. An older replica that still runs adds endpoints without `began_at_ms`: these begin when they are added. */
export const began = changes(
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
)

/** See the step for SQLite. A constant default rewrites no row. */
export const pace = changes(
  `alter table endpoint add column pace text collate "C"`,
  'alter table delivery add column limited integer default 0 not null',
)

/** Adds which form of the portal gave an order, so that a form that is sent twice gives it once; and the sessions that were logged out. */
export const onceOnlyForms = changes(
  `
alter table operator_action add column form text collate "C", add column form_detail text collate "C";
create unique index operator_action_by_form on operator_action (form) where form is not null;
create index operator_action_by_form_detail on operator_action (at_ms) where form_detail is not null;
create table ended_session (session text collate "C" primary key, until_ms bigint not null)`,
)

/**
 * The indexes by which the audit trail is listed: by who, by what, by both, and by what an order is about. See `store/admin/operator-actions.ts`. They
 * leave out long names, because PostgreSQL refuses a row that is too long for an index.
 */
export const auditLists = changes(
  `
create index operator_action_by_name on operator_action (by_name, at_ms, id) where length(by_name) <= 200;
create index operator_action_by_action on operator_action (action, at_ms, id);
create index operator_action_by_both on operator_action (by_name, action, at_ms, id) where length(by_name) <= 200;
create index operator_action_by_target on operator_action (target_kind, target, at_ms, id) where length(target) <= 200`,
)

/** A join finds the events of a sighting by this index. It leaves out the most, whose number is that of their sighting. */
export const renumberedEvents = changes('create index feed_renumbered on feed (entry) where entry <> sequence and payload_ref is not null')

/** Adds an index by which a join, or a clock that is put back, finds the expected pushes of a parcel without reading those of all others. */
export const expectedByParcel = changes('create index expected_push_by_parcel on expected_push (parcel_id)')

/** What is wrong at a replica and only it can know, as JSON: each replica writes it with the renewal of its lease. Null: an older version. */
export const replicaConcerns = changes('alter table replica add column concerns text collate "C"')
