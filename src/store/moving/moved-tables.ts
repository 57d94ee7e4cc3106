import type { StoredRow } from '../../domain/admin/store-move.ts'
import type { CopiedTable } from '../../flow/admin/moving/move-ports.ts'
import type { Tables } from '../schema.ts'

/** Tables that a move leaves behind, each with the reason. A table that is neither here nor in `MOVED` does not compile. */
export const NOT_MOVED = {
  sqlite_sequence: 'SQLite keeps it by itself; a move sets the last id of each table',
  counter: 'a move sets the last sequence; the rest are locks and versions of this database',
} as const satisfies Partial<Record<keyof Tables, string>>

/** Tables that only one engine has, each with the reason why a move leaves it behind. */
export const NOT_MOVED_BY_ENGINE: Readonly<Record<string, string>> = {
  kysely_migration: 'the history of the SQLite schema',
  kysely_migration_lock: 'the history of the SQLite schema',
  schema_version: 'the history of the PostgreSQL schema',
  lease: 'named the relay that uses this database, in versions without replicas',
  replica: 'which replicas use this database now',
  role: 'which replica of this database does what now',
  carrier_budget: 'the calls of the day and a pause are moved as the carrier memory; the rest is outdated a moment later',
  carrier_token: 'refusals are moved as the carrier memory; a new token is asked for',
  flight: 'which replica asks the carrier about which identifier now',
  fenced_replica: 'the endpoints of replicas that were declared dead lately; those replicas use this database',
  lesson: 'what replicas learnt in the last seconds, for the poller of this database; they learn it again',
}

/** Columns of moved tables that stay behind, as `table.column`, each with its reason. */
export const COLUMNS_NOT_MOVED: Readonly<Record<string, string>> = {
  'parcel.version': 'compared with answers that replicas of this database have cached',
}

/** The setting that holds the last sequence on SQLite. PostgreSQL has the table `counter` instead. */
export const SETTING_OF_SEQUENCE = 'sequence'

/** The setting in which a single relay stores what it knows about the carrier, such as the calls of each day and a pause. */
export const SETTING_OF_CARRIER = 'carrier-memory'

export type ColumnKind = 'number' | 'text' | 'bytes'

export interface MovedTable extends CopiedTable {
  /** The columns of the primary key come first. */
  readonly columns: readonly { readonly name: string; readonly kind: ColumnKind }[]
  /** A second unique key, by the positions of its columns; null: the primary key is the only one. */
  readonly unique: { readonly columns: readonly number[]; readonly whenNull: number | null } | null
}

type MovedName = Exclude<keyof Tables, keyof typeof NOT_MOVED>
type Columns<Name extends MovedName> = Partial<Record<keyof Tables[Name] & string, ColumnKind>>

interface Unique<Name extends MovedName> {
  readonly columns: readonly (keyof Tables[Name] & string)[]
  /** The unique key applies only to rows where this column is null. */
  readonly whenNull?: keyof Tables[Name] & string
}

function moved<Name extends MovedName>(name: Name, key: Columns<Name>, rest: Columns<Name>, unique?: Unique<Name>): MovedTable {
  const columns = Object.entries<ColumnKind | undefined>({ ...key, ...rest }).map(([column, kind]) => ({
    name: column,
    kind: kind ?? 'number',
  }))
  const placeOf = (column: string) => columns.findIndex((one) => one.name === column)
  const { whenNull } = unique ?? {}
  return {
    name,
    columns,
    keyLength: Object.keys(key).length,
    unique:
      unique === undefined ? null : { columns: unique.columns.map(placeOf), whenNull: whenNull === undefined ? null : placeOf(whenNull) },
  }
}

const MOVED: { readonly [Name in MovedName]: MovedTable } = {
  setting: moved('setting', { name: 'text' }, { value: 'bytes' }),
  parcel: moved(
    'parcel',
    { id: 'number' },
    {
      watched_at_ms: 'number',
      first_pushed_at_ms: 'number',
      activated_at_ms: 'number',
      entry_count: 'number',
      latest_status: 'text',
      latest_at_ms: 'number',
      latest_learnt_at_ms: 'number',
      last_seen_at_ms: 'number',
      checked_at_ms: 'number',
      failures: 'number',
      next_poll_at_ms: 'number',
      stopped: 'text',
      is_full: 'number',
    },
  ),
  parcel_status: moved('parcel_status', { status: 'text' }, {}),
  event_value: moved('event_value', { member: 'text', value: 'text' }, {}),
  identifier: moved('identifier', { value: 'text' }, { parcel_id: 'number', is_tracking_id: 'number', refused_at_ms: 'number' }),
  content: moved('content', { id: 'number' }, { digest: 'bytes', is_unused: 'number', json: 'text' }, { columns: ['digest'] }),
  sighting: moved(
    'sighting',
    { parcel_id: 'number', at_ms: 'number', time_form: 'number', content_id: 'number', listing: 'number', ordinal: 'number' },
    { asked_at_ms: 'number', sequence: 'number', learnt_at_ms: 'number', audience: 'number', tellings: 'text', extra: 'text' },
  ),
  answer: moved(
    'answer',
    { parcel_id: 'number', language: 'text', digest: 'bytes' },
    {
      asked_at_ms: 'number',
      entry_count: 'number',
      is_flawed: 'number',
      decides_order: 'number',
      head: 'text',
      body: 'bytes',
      listed: 'bytes',
    },
  ),
  inbox: moved(
    'inbox',
    { id: 'number' },
    {
      digest: 'bytes',
      received_at_ms: 'number',
      key_index: 'number',
      content_encoding: 'text',
      state: 'number',
      reason: 'text',
      parcel_id: 'number',
      duplicates: 'number',
      body: 'bytes',
    },
    { columns: ['parcel_id', 'digest'] },
  ),
  refusal: moved(
    'refusal',
    { id: 'number' },
    {
      at_ms: 'number',
      address: 'text',
      verdict: 'text',
      key_name: 'text',
      causes: 'text',
      is_cut_short: 'number',
      headers: 'text',
      body_bytes: 'number',
      body_sha256: 'text',
    },
  ),
  feed: moved(
    'feed',
    { sequence: 'number' },
    { kind: 'number', parcel_id: 'number', entry: 'number', payload_ref: 'number', earlier_audience: 'number', earlier_tellings: 'text' },
  ),
  expected_push: moved(
    'expected_push',
    { entry: 'number' },
    { parcel_id: 'number', event_at_ms: 'number', found_at_ms: 'number', due_at_ms: 'number' },
  ),
  endpoint: moved(
    'endpoint',
    { id: 'number' },
    {
      name: 'text',
      origin: 'text',
      settings: 'text',
      disabled: 'text',
      disabled_at_ms: 'number',
      disabled_by: 'text',
      succeeded_at_ms: 'number',
      failing_since_ms: 'number',
      failed_for_ms: 'number',
      failed_parcels: 'text',
      probe_at_ms: 'number',
      probes_failed: 'number',
      refused_from: 'number',
      refused_at_ms: 'number',
      round: 'number',
      woken_at_ms: 'number',
      alarmed_at_ms: 'number',
      pace: 'text',
      sealed_keys: 'text',
      queued_to: 'number',
      first_sequence: 'number',
      began_at_ms: 'number',
      backfill_from: 'number',
      backfill_to: 'number',
      backfill_earlier: 'text',
      removed_at_ms: 'number',
    },
    { columns: ['name'], whenNull: 'removed_at_ms' },
  ),
  composed_event: moved('composed_event', { sequence: 'number' }, { body: 'bytes' }),
  delivery: moved(
    'delivery',
    { id: 'number' },
    {
      endpoint_id: 'number',
      parcel_id: 'number',
      sequence: 'number',
      previous_sequence: 'number',
      inbox_id: 'number',
      state: 'number',
      reason: 'text',
      attempts: 'number',
      spared: 'number',
      limited: 'number',
      round: 'number',
      queued_at_ms: 'number',
      first_failed_at_ms: 'number',
      next_attempt_at_ms: 'number',
      settled_at_ms: 'number',
      accepted_at_ms: 'number',
      accepted_duration_ms: 'number',
      accepted_status: 'number',
      accepted_address: 'text',
      queued_lived_ms: 'number',
    },
    { columns: ['endpoint_id', 'parcel_id', 'sequence'] },
  ),
  attempt: moved(
    'attempt',
    { id: 'number' },
    { delivery_id: 'number', at_ms: 'number', duration_ms: 'number', status: 'number', reason: 'text', answer: 'bytes', address: 'text' },
  ),
  failure: moved(
    'failure',
    { endpoint_id: 'number', digest: 'text' },
    {
      status: 'number',
      reason: 'text',
      answer: 'bytes',
      count: 'number',
      first_at_ms: 'number',
      last_at_ms: 'number',
      delivery_id: 'number',
    },
  ),
  job: moved(
    'job',
    { id: 'number' },
    {
      kind: 'text',
      task: 'text',
      started_by: 'text',
      state: 'text',
      place: 'text',
      done: 'number',
      failure: 'text',
      created_at_ms: 'number',
      started_at_ms: 'number',
      ended_at_ms: 'number',
      end_told: 'number',
    },
  ),
  language_asked: moved('language_asked', { parcel_id: 'number', language: 'text' }, { sequence: 'number' }),
  audit: moved('audit', { sequence: 'number' }, { at_ms: 'number', kind: 'text', parcel_id: 'number', detail: 'text' }),
  age_mark: moved('age_mark', { at_ms: 'number' }, { sequence: 'number', parcel_id: 'number' }),
  tombstone: moved('tombstone', { mark: 'text' }, { parcel_id: 'number', erased_at_ms: 'number' }),
  erasure: moved('erasure', { identifier: 'text' }, {}),
  operator_event: moved('operator_event', { id: 'number' }, { at_ms: 'number', event: 'text', detail: 'text' }),
  operator_action: moved(
    'operator_action',
    { id: 'number' },
    {
      at_ms: 'number',
      by_kind: 'text',
      by_name: 'text',
      address: 'text',
      action: 'text',
      target_kind: 'text',
      target: 'text',
      detail: 'text',
      form: 'text',
      form_detail: 'text',
    },
  ),
  ended_session: moved('ended_session', { session: 'text' }, { until_ms: 'number' }),
  trouble: moved('trouble', { subject: 'text' }, { since_ms: 'number', count: 'number' }),
  refused_pushes: moved(
    'refused_pushes',
    { process: 'text', cause: 'text', from_ms: 'number' },
    { until_ms: 'number', count: 'number', pushes: 'number', again: 'number' },
  ),
  tally: moved('tally', { span: 'text', kind: 'text', from_ms: 'number' }, { counts: 'text' }),
  quarantine_count: moved('quarantine_count', { id: 'number' }, { at_ms: 'number', reason: 'text', count: 'number' }),
}

export const MOVED_TABLES: readonly MovedTable[] = Object.values(MOVED)

/** Changes of a table are counted up to this number only, because there may be millions. */
export const CHANGES_COUNTED = 50_000

/** Throws if a move does not copy the table. */
export function movedTable({ name }: CopiedTable): MovedTable {
  const found = MOVED_TABLES.find((table) => table.name === name)
  if (found === undefined) throw new Error(`a move copies no table ${name}`)
  return found
}

export function columnsOf(table: MovedTable, prefix = ''): string {
  return table.columns.map(({ name }) => `${prefix}${name}`).join(', ')
}

export function keyOf({ columns, keyLength }: MovedTable): MovedTable['columns'] {
  return columns.slice(0, keyLength)
}

/** Returns only the rows to which the table's unique key applies. */
export function uniqueAmong({ unique }: MovedTable, rows: readonly StoredRow[]): readonly StoredRow[] {
  if (unique === null) return []
  const { whenNull } = unique
  return whenNull === null ? rows : rows.filter((row) => row[whenNull] === null)
}
