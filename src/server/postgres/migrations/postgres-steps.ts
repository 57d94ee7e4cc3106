import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { renderFirstStep } from '../../../core/store/first-step.ts'
import { COLUMN_TYPES } from '../postgres-dialect.ts'

/*
 * The schema has the tables and columns of SQLite's schema, so that one row codec serves both engines, and the tables that replicas share.
 *
 * Three things differ from SQLite. Columns are ordered by size, widest first, because PostgreSQL pads them. An index for paged lists ends
 * in `id`, which SQLite adds by itself. And `counter` holds the numbers that SQLite stores in `sqlite_sequence` and in `setting`.
 *
 * TEXT stands for `text collate "C"`: texts are compared by their bytes, as in SQLite, whatever the locale of the database.
 */

const SIZES = ['big', 'int', 'small']
/** Small tables, whose columns have the order of SQLite. */
const UNSORTED = ['trouble', 'refused_pushes', 'quarantine_count', 'tally']
/** Columns that come before the others of their size, in this order. Nothing needs the order: databases were made with it. */
const FIRST: Readonly<Record<string, string>> = {
  sighting: 'ordinal',
  inbox: 'id parcel_id',
  delivery: 'attempts spared round',
  endpoint: `id succeeded_at_ms failing_since_ms failed_for_ms probe_at_ms woken_at_ms queued_to backfill_from backfill_to
    name origin settings disabled disabled_by failed_parcels backfill_earlier`,
}

const TABLES = renderFirstStep({
  name: 'postgres',
  types: { ...COLUMN_TYPES, text: 'TEXT' },
  arrange(table, columns) {
    if (UNSORTED.includes(table)) return columns
    const first = FIRST[table]?.split(/\s+/).toReversed() ?? []
    const own = table === 'parcel' ? [['version', { type: 'big', preset: 0 }] as const] : []
    const sizeOf = (type: string) => SIZES.indexOf(type) + 1 || SIZES.length + 1
    return [...columns, ...own].toSorted(
      ([one, { type }], [other, { type: otherType }]) => sizeOf(type) - sizeOf(otherType) || first.indexOf(other) - first.indexOf(one),
    )
  },
  endings: {
    // Every observation updates a row, and most leave the schedule as it is. With free room on its page such an update touches no index, so no
    // index may have another column that changes, or the version. Vacuumed at 2 % of dead rows, because at the default of 20 % the index of due
    // polls would be slow to read.
    parcel: 'with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)',
    // Every round of deliveries updates a few rows. With free room on the page no index is touched. The threshold brings a vacuum before the
    // default of 50 dead rows, which is many times the table.
    endpoint: 'with (fillfactor = 50, autovacuum_vacuum_threshold = 20)',
    // Free room on the pages would not help, because every update moves a row from one partial index to another, and so writes all indexes.
    // Vacuumed at 1 % of dead rows, because ended deliveries leave dead entries at the front of delivery_due, which is read every two seconds.
    delivery: 'with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.02)',
  },
})

const OWN = `
-- Every commit updates this table. With free room all versions of a row stay on one page, which any reader prunes. The thresholds bring a vacuum
-- after a thousand updates.
create table counter (name TEXT primary key, value bigint not null, base bigint not null, version bigint not null)
  with (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
insert into counter (name, value, base, version)
  values ('sequence', 0, 0, 0), ('settings', 0, 0, 0), ('polls', 0, 0, 0), ('roles', 0, 0, 0), ('orders', 0, 0, 0);
-- Each value stands for a run of 10,000 numbers. A batch takes the numbers of its new parcels in one run, so that the older of two parcels has the
-- lower number. A replica takes one run of numbers for many pushes, so that there are few gaps.
create sequence parcel_numbers increment by 10000 start with 10000;
create sequence inbox_numbers increment by 10000 start with 10000;

-- The key is a hash, because a carrier's status may be too long for an index entry, and an error would stop the recording.
create unique index parcel_status_key on parcel_status (hashtextextended(status, 0));
create index inbox_unrecorded on inbox (received_at_ms, id) where parcel_id = 0;
`

/** The tables that replicas share. */
const REPLICAS = `
-- The holders of roles that only one relay may have, and the end of each lease by the server's clock.
create table lease (role TEXT primary key, holder TEXT not null, epoch bigint not null, until_ms bigint not null)
  with (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- A row is a relay from its start until it stops or is declared dead. Deleting the row fences the relay and frees its roles. The names of the
-- endpoints in its config and of its keys at rest are JSON; the first key encrypts. Its config took effect at configured_at_ms, or at its start if
-- null. Each row is updated every second; with free room all its versions stay on one page.
create table replica (
  id bigint generated by default as identity primary key, started_at_ms bigint not null, seen_at_ms bigint not null,
  until_ms bigint not null, configured_at_ms bigint, name TEXT not null, version TEXT not null, fingerprint TEXT not null,
  endpoints TEXT not null, keys TEXT not null)
  with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

create table role (replica_id bigint not null references replica (id) on delete cascade, name TEXT primary key);
create index role_by_replica on role (replica_id);

-- The endpoints in the configs of replicas that were declared dead. They are kept until until_ms, because the replica may come back.
create table fenced_replica (until_ms bigint not null, endpoints TEXT not null);

-- Observations of replicas about the carrier, kept for seconds, until the poller has learnt from them.
create table lesson (id bigint generated by default as identity primary key, body TEXT not null);

-- Calls in flight and waits are in the row itself, because a statement that waits for the row's lock sees other tables as they were before the wait.
create table carrier_budget (
  id bigint primary key, seen_ms bigint not null default 0, offset_ms bigint not null default 0, due_us bigint not null default 0,
  paused_until_ms bigint not null default 0, last_day bigint not null default 0, days jsonb not null default '{}',
  slots jsonb not null default '{}', app_waits jsonb not null default '{}');
insert into carrier_budget (id) values (1);

create table carrier_token (
  id bigint primary key, version bigint not null default 0, refused_until_ms bigint, paused_until_ms bigint not null default 0,
  holder_until_ms bigint not null default 0, tries integer not null default 0, troubles integer not null default 0, sealed TEXT, mark TEXT,
  holder TEXT, trouble TEXT);
insert into carrier_token (id) values (1);

create table flight (
  key TEXT primary key, until_ms bigint not null, retry_after_ms bigint, holder TEXT not null, outcome TEXT);
create index flight_by_time on flight (until_ms);
`

export const schema: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const part of [TABLES.join(';\n'), OWN, REPLICAS]) await sql.raw(part.replaceAll('TEXT', 'text collate "C"')).execute(db)
  },
}

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
 * The indexes by which the audit trail is listed: by who, by what, by both, and by what an order is about. See `core/store/admin/operations.ts`. They
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

/** See the step for SQLite. */
export const orderContext = changes(
  `create table order_context (parcel_id bigint primary key, sequence bigint not null, reference text collate "C", labels text collate "C" not null, note text collate "C")`,
  'create index order_context_by_reference on order_context (reference, parcel_id) where reference is not null',
)

/** See the step for SQLite. Notes are added with every batch of pushes and taken away every few seconds. */
export const carrierReport = changes(
  `create table report_note (id bigint generated by default as identity primary key, at_ms bigint not null, note text collate "C" not null)
    with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0)`,
  `create table report_evidence (name text collate "C" not null, id bigint not null, day bigint not null, parcel_id bigint not null, until_ms bigint,
    primary key (name, id))`,
  'create index report_evidence_by_day on report_evidence (name, day, id)',
  'create index report_evidence_by_parcel on report_evidence (parcel_id) where parcel_id > 0',
)

/** See the step for SQLite. */
export const overwritten = changes(
  'create table overwritten (parcel_id bigint not null, nth bigint not null, sequence bigint not null, learnt_at_ms bigint not null, value text collate "C" not null, primary key (parcel_id, nth))',
  `insert into setting (name, value)
    select 'overwritten-since', convert_to('[' || value || ',' || (extract(epoch from clock_timestamp()) * 1000)::bigint || ']', 'UTF8')
    from counter where name = 'sequence' and value > 0`,
)

/** See the step for SQLite. */
export const watchdogs = changes(
  'create table watchdog_due (parcel_id bigint primary key, due_at_ms bigint not null, is_open smallint not null, ask_at_ms bigint)',
  'create index watchdog_due_at on watchdog_due (due_at_ms) where ask_at_ms is null',
  'create index watchdog_ask_at on watchdog_due (ask_at_ms) where ask_at_ms is not null',
  `create table watchdog_breach (id bigint generated by default as identity primary key, parcel_id bigint not null, rule text collate "C" not null,
    since_ms bigint not null, is_checked smallint not null, told_at_ms bigint not null, ended_at_ms bigint)`,
  'create unique index watchdog_breach_once on watchdog_breach (parcel_id, rule, since_ms)',
  'create index watchdog_breach_by_rule on watchdog_breach (rule, id)',
  'create index watchdog_breach_open on watchdog_breach (id) where ended_at_ms is null',
  'create index watchdog_breach_open_by_rule on watchdog_breach (rule, id) where ended_at_ms is null',
)

/** See the step for SQLite. */
export const toldByWatchdogs = changes('create index feed_told on feed (parcel_id) where entry < 0')
