import { COLUMNS, type Column, type Tables } from '../../core/store/schema.ts'
import type { StoredRow } from './store-move.rules.ts'
import type { CopiedTable } from './store-moves.rows.ts'

/** The tables that a move leaves behind, each with the reason. All tables in `COLUMNS` are moved; any other does not compile without a reason. */
export const NOT_MOVED: Readonly<Record<Exclude<keyof Tables, keyof typeof COLUMNS>, string>> = {
  sqlite_sequence: 'SQLite keeps it by itself; a move sets the last id of each table',
  counter: 'a move sets the last sequence; the rest are locks and versions of this database',
}

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

interface Unique<Column = string> {
  readonly columns: readonly Column[]
  /** The unique key applies only to rows where this column is null. */
  readonly whenNull?: Column
}

const UNIQUE: Readonly<Record<string, Unique>> = {
  content: { columns: ['digest'] },
  inbox: { columns: ['parcel_id', 'digest'] },
  endpoint: { columns: ['name'], whenNull: 'removed_at_ms' },
  delivery: { columns: ['endpoint_id', 'parcel_id', 'sequence'] },
} satisfies { readonly [Name in keyof typeof COLUMNS]?: Unique<keyof (typeof COLUMNS)[Name]> }

const KINDS = { big: 'number', int: 'number', small: 'number', text: 'text', bytes: 'bytes' } as const

export const MOVED_TABLES: readonly MovedTable[] = Object.entries<Readonly<Record<string, Column>>>(COLUMNS).map(([name, all]) => {
  const keys = Object.entries(all).filter(([, { isKey }]) => isKey === true)
  const rest = Object.entries(all).filter(([, { isKey }]) => isKey !== true)
  const columns = [...keys, ...rest].map(([column, { type }]) => ({ name: column, kind: KINDS[type] }))
  const placeOf = (column: string) => columns.findIndex((one) => one.name === column)
  const unique = UNIQUE[name]
  const whenNull = unique?.whenNull === undefined ? null : placeOf(unique.whenNull)
  return { name, columns, keyLength: keys.length, unique: unique === undefined ? null : { columns: unique.columns.map(placeOf), whenNull } }
})

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
