import type { Migration } from 'kysely/migration'
import { COLUMNS, type Column, type ColumnType } from './tables.ts'

/** The indexes of the first step. A column with `+` is only in PostgreSQL's index: SQLite adds it by itself. */
const INDEXES: readonly string[] = [
  'index parcel_by_next_poll on parcel (next_poll_at_ms, +id) where next_poll_at_ms is not null',
  'index parcel_by_stopped on parcel (stopped, +id) where next_poll_at_ms is null',
  // A poll reads identifiers from the index alone, in the order in which to try them.
  'index identifier_by_parcel on identifier (parcel_id, is_tracking_id, refused_at_ms)',
  'index content_unused on content (id) where is_unused = 1',
  // Erasure and retention remove the contents that nobody else uses.
  'index sighting_by_content on sighting (content_id)',
  // A retention pass finds its rows by this index and others by age. They hold only rows that still have something to remove.
  'index answer_by_age on answer (asked_at_ms) where body is not null',
  'unique index inbox_by_digest on inbox (parcel_id, digest)',
  'index inbox_quarantined on inbox (id) where state = 1',
  'index inbox_expired on inbox (id) where state = 2',
  'index inbox_dismissed on inbox (id) where state = 3',
  'index inbox_by_reason on inbox (reason, id) where state = 1',
  'index inbox_by_age on inbox (received_at_ms, +id) where body is not null',
  'index expected_push_by_due on expected_push (due_at_ms, +entry)',
  'index audit_by_parcel on audit (parcel_id)',
  'index feed_joins on feed (entry, sequence) where kind = 4',
  // An erasure removes the bodies of the events that were composed for the entries of the parcel.
  'index feed_composed on feed (entry) where payload_ref <= 0',
  'index feed_backfill on feed (sequence) where payload_ref = -1',
  'unique index endpoint_by_name on endpoint (name) where removed_at_ms is null',
  'unique index delivery_by_parcel on delivery (endpoint_id, parcel_id, sequence)',
  'index delivery_by_time on delivery (queued_at_ms, +id)',
  // Only the earliest waiting delivery of a parcel is due (state 1); the others wait behind it (state 0).
  'index delivery_due on delivery (endpoint_id, round, next_attempt_at_ms, +id) where state = 1',
  'index delivery_waiting on delivery (endpoint_id, parcel_id, sequence, state, queued_at_ms) where state < 2',
  // A waiting delivery has a reason if it is to be skipped.
  'index delivery_skipped on delivery (state, endpoint_id) where state < 2 and reason is not null',
  // Replays and lists of ended deliveries read nothing else.
  'index delivery_ended on delivery (endpoint_id, state, sequence, +id) where state >= 2',
  'index delivery_ended_by_time on delivery (endpoint_id, state, queued_at_ms, +id) where state >= 2',
  'index delivery_by_age on delivery (settled_at_ms, +id) where state >= 2',
  'index delivery_composed on delivery (sequence) where inbox_id is null',
  'index attempt_by_delivery on attempt (delivery_id, +id)',
  'index failure_by_time on failure (endpoint_id, last_at_ms)',
  'index job_unended on job (id) where ended_at_ms is null',
  'index job_end_untold on job (id) where ended_at_ms is not null and end_told = 0',
  'index operator_event_by_time on operator_event (at_ms, id)',
  'index operator_event_by_name on operator_event (event, at_ms, id)',
  'index operator_action_by_time on operator_action (at_ms, id)',
  'index tally_by_time on tally (span, from_ms)',
]

type NamedColumn = readonly [name: string, column: Column]

export interface SchemaEngine {
  readonly name: 'sqlite' | 'postgres'
  readonly types: Readonly<Record<ColumnType, string>>
  /** Returns the columns of a table in the order in which the engine stores them. */
  arrange(table: string, columns: readonly NamedColumn[]): readonly NamedColumn[]
  /** What the SQL of a table says after its columns, by table. */
  readonly endings: Readonly<Record<string, string>>
}

/** Returns the statements that make the tables and indexes of the first step, without those that only one engine has. */
export function renderFirstStep({ name: engine, types, arrange, endings }: SchemaEngine): readonly string[] {
  const tables = Object.entries<Readonly<Record<string, Column>>>(COLUMNS).flatMap(([table, all]) => {
    const columns = Object.entries(all).filter(([, { isLater }]) => isLater !== true)
    if (columns.length === 0) return []
    const keys = columns.filter(([, { isKey }]) => isKey === true).map(([name]) => name)
    const lines = arrange(table, columns).map(([name, column]) => {
      const isAlone = column.isKey === true && keys.length === 1
      return `${name} ${types[column.type]} ${column.rule?.[engine] ?? (isAlone ? 'primary key' : restOf(column))}`
    })
    if (keys.length > 1) lines.push(`constraint ${table}_key primary key (${keys.join(', ')})`)
    return [`create table ${table} (${lines.join(', ')}) ${endings[table] ?? ''}`]
  })
  const indexes = INDEXES.map((index) => `create ${engine === 'sqlite' ? index.replace(/, \+\w+/, '') : index.replace('+', '')}`)
  return [...tables, ...indexes]
}

function restOf({ preset, isNull }: Column): string {
  const value = typeof preset === 'string' ? `'${preset}'` : preset
  return [...(value === undefined ? [] : [`default ${value}`]), ...(isNull === true ? [] : ['not null'])].join(' ')
}

/** How many rows one batch of a backfill fills. This takes a fraction of a second on either engine. */
export const BACKFILL_ROWS = 5000

/**
 * Fills what a schema step has added, such as a column, in at most `rows` of the rows that existed before. Returns how many rows it filled; 0:
 * none was left. It is called until it returns 0, also after a restart. So it must find the unfilled rows in the database, and needs an index or
 * a range of ids to find them quickly.
 */
export type Backfill = (db: Parameters<Migration['up']>[0], rows: number) => Promise<number>

/** The reason why a store from before the first release is refused, and the remedy. */
export const MADE_UNRELEASED =
  'it was made by a version from before the first release, which this version cannot read. Nothing was changed. Start on a new store: watch the parcels again, and ' +
  'polls fetch their histories.'
