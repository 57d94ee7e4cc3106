import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/**
 * Times are epoch milliseconds (`_at_ms`), flags are 0 or 1. `store/schema.ts` explains each column. An id is AUTOINCREMENT if it must not
 * be reused after its row is deleted, because the feed, the audit trail or a client may still refer to it.
 */
const HISTORY = `
create table setting (name text primary key, value blob not null);

create table parcel (
  id integer primary key autoincrement, watched_at_ms integer, first_pushed_at_ms integer, activated_at_ms integer not null,
  entry_count integer not null, latest_status text, latest_at_ms integer, last_seen_at_ms integer, checked_at_ms integer,
  failures integer not null, next_poll_at_ms integer, stopped text, is_full integer not null, latest_learnt_at_ms integer);
create index parcel_by_next_poll on parcel (next_poll_at_ms) where next_poll_at_ms is not null;
create index parcel_by_stopped on parcel (stopped) where next_poll_at_ms is null;

create table parcel_status (status text not null primary key) without rowid;

create table event_value (
  member text not null, value text not null, constraint event_value_key primary key (member, value)) without rowid;

create table identifier (
  value text primary key, parcel_id integer not null, is_tracking_id integer not null, refused_at_ms integer) without rowid;
-- A poll reads identifiers from the index alone, in the order in which to try them.
create index identifier_by_parcel on identifier (parcel_id, is_tracking_id, refused_at_ms);

create table content (
  id integer primary key autoincrement, digest blob not null unique, is_unused integer default 0 not null, json text not null);
create index content_unused on content (id) where is_unused = 1;

create table sighting (
  parcel_id integer not null, at_ms integer not null, time_form integer not null, content_id integer not null, listing integer not null,
  ordinal integer not null, asked_at_ms integer not null, sequence integer not null, audience integer default 0 not null, extra text,
  learnt_at_ms integer, constraint sighting_key primary key (parcel_id, at_ms, time_form, content_id, listing, ordinal)) without rowid;
-- Erasure and retention remove the contents that nobody else uses.
create index sighting_by_content on sighting (content_id);

create table answer (
  parcel_id integer not null, language text not null, digest blob not null, asked_at_ms integer not null, entry_count integer not null,
  is_flawed integer not null, decides_order integer not null, head text not null, body blob,
  constraint answer_key primary key (parcel_id, language, digest));
-- A retention pass finds its rows by this index and others by age. They hold only rows that still have something to remove.
create index answer_by_age on answer (asked_at_ms) where body is not null;

create table language_asked (
  parcel_id integer not null, language text not null, sequence integer not null,
  constraint language_asked_key primary key (parcel_id, language));

create table inbox (
  id integer primary key autoincrement, digest blob not null, received_at_ms integer not null, key_index integer not null, content_encoding text,
  state integer not null, reason text, parcel_id integer not null, duplicates integer default 0 not null, body blob);
create unique index inbox_by_digest on inbox (parcel_id, digest);
create index inbox_quarantined on inbox (id) where state = 1;
create index inbox_expired on inbox (id) where state = 2;
create index inbox_dismissed on inbox (id) where state = 3;
create index inbox_by_reason on inbox (reason, id) where state = 1;
create index inbox_by_age on inbox (received_at_ms) where body is not null;
create index inbox_unrecorded on inbox (parcel_id, received_at_ms) where parcel_id = 0;

create table refusal (
  id integer primary key, at_ms integer not null, address text not null, verdict text not null, key_name text,
  causes text not null, is_cut_short integer not null, headers text not null, body_bytes integer, body_sha256 text);

create table expected_push (
  entry integer primary key, parcel_id integer not null, event_at_ms integer not null, found_at_ms integer not null,
  due_at_ms integer not null);
create index expected_push_by_due on expected_push (due_at_ms);

create table audit (
  sequence integer primary key, at_ms integer not null, kind text not null, parcel_id integer not null, detail text not null);
create index audit_by_parcel on audit (parcel_id);

-- The numbers that were in use at a time, so that rows of the feed and of parcels need no column for their age.
create table age_mark (at_ms integer primary key, sequence integer not null, parcel_id integer not null);

create table tombstone (mark text primary key, parcel_id integer not null, erased_at_ms integer not null) without rowid`

const DELIVERY = `
create table feed (
  sequence integer primary key, kind integer not null, parcel_id integer not null, entry integer not null, payload_ref integer,
  earlier_audience integer default 0 not null);
create index feed_joins on feed (entry, sequence) where kind = 4;
-- An erasure removes the bodies of the events that were composed for the entries of the parcel.
create index feed_composed on feed (entry) where payload_ref <= 0;
-- A search for what an endpoint never received reads only the events that were told as backfill.
create index feed_backfill on feed (sequence) where payload_ref = -1;

create table composed_event (sequence integer primary key, body blob not null);

create table endpoint (
  id integer primary key autoincrement, name text not null, origin text not null, settings text not null, disabled text,
  succeeded_at_ms integer, failing_since_ms integer, sealed_keys text, queued_to integer, removed_at_ms integer, backfill_from integer,
  backfill_to integer, failed_for_ms integer default 0 not null, failed_parcels text default '[]' not null, probe_at_ms integer,
  probes_failed integer default 0 not null, round integer default 1 not null, woken_at_ms integer default 0 not null,
  refused_from integer, refused_at_ms integer, backfill_earlier text default '[]' not null, alarmed_at_ms integer,
  disabled_at_ms integer, disabled_by text, first_sequence integer default 0 not null);
create unique index endpoint_by_name on endpoint (name) where removed_at_ms is null;

create table delivery (
  id integer primary key autoincrement, endpoint_id integer not null, parcel_id integer not null, sequence integer not null,
  previous_sequence integer not null, inbox_id integer, state integer not null, reason text, attempts integer not null,
  queued_at_ms integer not null, first_failed_at_ms integer, next_attempt_at_ms integer not null, settled_at_ms integer,
  accepted_at_ms integer, accepted_duration_ms integer, accepted_status integer, round integer default 0 not null,
  spared integer default 0 not null, accepted_address text);
create unique index delivery_by_parcel on delivery (endpoint_id, parcel_id, sequence);
create index delivery_by_time on delivery (queued_at_ms);
-- Only the earliest waiting delivery of a parcel is due (state 1); the others wait behind it (state 0).
create index delivery_due on delivery (endpoint_id, round, next_attempt_at_ms) where state = 1;
create index delivery_waiting on delivery (endpoint_id, parcel_id, sequence, state, queued_at_ms) where state < 2;
-- A waiting delivery has a reason if it is to be skipped.
create index delivery_skipped on delivery (state, endpoint_id) where state < 2 and reason is not null;
-- Replays and lists of ended deliveries read nothing else.
create index delivery_ended on delivery (endpoint_id, state, sequence) where state >= 2;
create index delivery_ended_by_time on delivery (endpoint_id, state, queued_at_ms) where state >= 2;
create index delivery_by_age on delivery (settled_at_ms) where state >= 2;
create index delivery_composed on delivery (sequence) where inbox_id is null;

create table attempt (
  id integer primary key, delivery_id integer not null, at_ms integer not null, duration_ms integer not null, status integer, reason text,
  answer blob, address text);
create index attempt_by_delivery on attempt (delivery_id);

create table failure (
  endpoint_id integer not null, digest text not null, status integer, reason text, answer blob, count integer not null,
  first_at_ms integer not null, last_at_ms integer not null, delivery_id integer not null,
  constraint failure_key primary key (endpoint_id, digest)) without rowid;
create index failure_by_time on failure (endpoint_id, last_at_ms)`

const OPERATIONS = `
create table job (
  id integer primary key autoincrement, kind text not null, task text not null, started_by text not null, state text not null, place text,
  done integer not null, failure text, created_at_ms integer not null, started_at_ms integer, ended_at_ms integer,
  end_told integer default 0 not null);
create index job_unended on job (id) where ended_at_ms is null;
create index job_end_untold on job (id) where ended_at_ms is not null and end_told = 0;

create table operator_event (id integer primary key, at_ms integer not null, event text not null, detail text not null);
create index operator_event_by_time on operator_event (at_ms, id);
create index operator_event_by_name on operator_event (event, at_ms, id);

create table operator_action (
  id integer primary key, at_ms integer not null, by_kind text not null, by_name text not null, address text, action text not null,
  target_kind text, target text, detail text not null);
create index operator_action_by_time on operator_action (at_ms, id);

create table trouble (subject text primary key, since_ms integer not null, count integer default 0 not null) without rowid;

create table refused_pushes (
  process text not null, cause text not null, from_ms integer not null, until_ms integer not null, count integer not null,
  pushes integer, again integer,
  constraint refused_pushes_key primary key (process, cause, from_ms)) without rowid;

create table quarantine_count (id integer primary key, at_ms integer not null, reason text not null, count integer not null);

create table tally (
  span text not null, kind text not null, from_ms integer not null, counts text not null,
  constraint tally_key primary key (span, kind, from_ms)) without rowid;
create index tally_by_time on tally (span, from_ms)`

export const schema: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    // The driver takes one statement at a time.
    for (const statement of [HISTORY, DELIVERY, OPERATIONS].flatMap((part) => part.split(/;\s*\n/))) await sql.raw(statement).execute(db)
  },
}
