import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { renderFirstStep } from '../../first-step.ts'

const WITHOUT_ROWID = [
  'parcel_status',
  'event_value',
  'identifier',
  'sighting',
  'tombstone',
  'failure',
  'trouble',
  'refused_pushes',
  'tally',
]

const STATEMENTS = [
  ...renderFirstStep({
    name: 'sqlite',
    types: { big: 'integer', int: 'integer', small: 'integer', text: 'text', bytes: 'blob' },
    arrange: (_, columns) => columns,
    endings: Object.fromEntries(WITHOUT_ROWID.map((table) => [table, 'without rowid'])),
  }),
  'create index inbox_unrecorded on inbox (parcel_id, received_at_ms) where parcel_id = 0',
]

export const schema: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    // The driver takes one statement at a time.
    for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
  },
}

/* Only append to this file: after the first release, a released step never changes (decision 0004). */

/** Makes a step of statements, which run one by one: the driver of SQLite takes no more at a time. */
function changes(...statements: readonly string[]): Migration {
  return {
    async up(db) {
      for (const statement of statements) await sql.raw(statement).execute(db)
    },
  }
}

/** The identifiers of erasures that a kill may interrupt: their parcels are gone, and other records may still name them. */
export const erasing = changes('create table erasure (identifier text primary key) without rowid')

/** `queued_lived_ms` and the index serve retention: how old a delivery is that was queued again, and which pushes may be sent again. */
export const lastingOrder = changes(
  'alter table answer add column listed blob',
  'alter table delivery add column queued_lived_ms integer',
  'create index delivery_replayable on delivery (inbox_id) where state >= 3 and inbox_id is not null',
)

/**
 * Endpoints that exist already count as begun when the first event that they were to be sent was recorded. If the feed no longer has it, the
 * oldest event in the feed counts. The time is taken from the first such event whose parcel was neither joined nor erased.
 */
export const began = changes(
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
)

/** The pace of an endpoint that limits us, and how often each delivery was refused so. */
export const pace = changes(
  `alter table endpoint add column pace text`,
  'alter table delivery add column limited integer default 0 not null',
)

/** Adds which form of the portal gave an order, so that a form that is sent twice gives it once; and the sessions that were logged out. */
export const onceOnlyForms = changes(
  'alter table operator_action add column form text',
  'alter table operator_action add column form_detail text',
  'create unique index operator_action_by_form on operator_action (form) where form is not null',
  'create index operator_action_by_form_detail on operator_action (at_ms) where form_detail is not null',
  'create table ended_session (session text primary key, until_ms integer not null) without rowid',
)

/** The indexes by which the audit trail is listed: by who, by what, by both, and by what an order is about. See `core/store/admin/operations.ts`. */
export const auditLists = changes(
  'create index operator_action_by_name on operator_action (by_name, at_ms, id) where length(by_name) <= 200',
  'create index operator_action_by_action on operator_action (action, at_ms, id)',
  'create index operator_action_by_both on operator_action (by_name, action, at_ms, id) where length(by_name) <= 200',
  'create index operator_action_by_target on operator_action (target_kind, target, at_ms, id) where length(target) <= 200',
)

/** A join finds the events of a sighting by this index. It leaves out the most, whose number is that of their sighting. */
export const renumberedEvents = changes('create index feed_renumbered on feed (entry) where entry <> sequence and payload_ref is not null')

/** Adds an index by which a join, or a clock that is put back, finds the expected pushes of a parcel without reading those of all others. */
export const expectedByParcel = changes('create index expected_push_by_parcel on expected_push (parcel_id)')

/** What apps say of the orders of parcels, and the index by which a parcel is found by the number of its order. */
export const orderContext = changes(
  'create table order_context (parcel_id integer primary key, sequence integer not null, reference text, labels text not null, note text)',
  'create index order_context_by_reference on order_context (reference, parcel_id) where reference is not null',
)

/** What the carrier's report counts. See `core/store/tables.ts`. */
export const carrierReport = changes(
  'create table report_note (id integer primary key, at_ms integer not null, note text not null)',
  `create table report_evidence (name text not null, id integer not null, day integer not null, parcel_id integer not null, until_ms integer,
    primary key (name, id)) without rowid`,
  'create index report_evidence_by_day on report_evidence (name, day, id)',
  'create index report_evidence_by_parcel on report_evidence (parcel_id) where parcel_id > 0',
)

/**
 * What changes overwrite of parcels. The marks say at which sequences the clock had reached which times: here when this began to be kept, and later
 * whenever the clock is put back. What a store held before is known only as it was then.
 */
export const overwritten = changes(
  'create table overwritten (parcel_id integer not null, nth integer not null, sequence integer not null, learnt_at_ms integer not null, value text not null, primary key (parcel_id, nth)) without rowid',
  `insert into setting (name, value)
    select 'overwritten-since', cast('[' || cast(value as text) || ',' || cast(unixepoch('now', 'subsec') * 1000 as integer) || ']' as blob)
    from setting where name = 'sequence'`,
)

/** The parcels that are watched over: when to look at each, and the breaches of rules that were told. */
export const watchdogs = changes(
  'create table watchdog_due (parcel_id integer primary key, due_at_ms integer not null, is_open integer not null, ask_at_ms integer)',
  'create index watchdog_due_at on watchdog_due (due_at_ms) where ask_at_ms is null',
  'create index watchdog_ask_at on watchdog_due (ask_at_ms) where ask_at_ms is not null',
  `create table watchdog_breach (id integer primary key autoincrement, parcel_id integer not null, rule text not null, since_ms integer not null,
    is_checked integer not null, told_at_ms integer not null, ended_at_ms integer)`,
  'create unique index watchdog_breach_once on watchdog_breach (parcel_id, rule, since_ms)',
  'create index watchdog_breach_by_rule on watchdog_breach (rule, id)',
  'create index watchdog_breach_open on watchdog_breach (id) where ended_at_ms is null',
  'create index watchdog_breach_open_by_rule on watchdog_breach (rule, id) where ended_at_ms is null',
)

/** An erasure finds by this index what watchdogs told of a parcel: the number of its breach may be gone. */
export const toldByWatchdogs = changes('create index feed_told on feed (parcel_id) where entry < 0')
