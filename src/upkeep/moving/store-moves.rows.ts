import { setTimeout as pause } from 'node:timers/promises'
import type { Session } from '../../core/store/engine.ts'
import { loadSetting } from '../../core/store/settings.ts'
import { COLUMNS, type Column, type Tables } from '../../core/store/tables.ts'
import { type LeftStore, parseLeftStores, type StoredRow, type StoreNumbers } from './store-move.rules.ts'

/** If the store is a file, no other relay can begin to use it before `release`. */
export interface StoreHold {
  /** The relay that uses the store, for messages; null: no relay uses it. */
  readonly usedBy: string | null
  release(): void
}

/** How an engine moves data from and to its stores. An `address` is the same as for `Engine`. */
export interface StoreMoves {
  /** Returns the name for messages. */
  nameOf(address: string): string
  openSource(address: string, side: MoveSide): Promise<MoveSource>
  openTarget(address: string, side: MoveSide): Promise<MoveTarget>
  /** Reads the mark of a move; null: the store has no mark, or does not exist. */
  readMark(address: string): Promise<MoveMark | null>
  /**
   * Removes what a move has left in the old store if its process was killed. Leaves the moves of live relays alone. Only a relay that uses the
   * store may call this.
   */
  clear(address: string, nowMs: number): Promise<void>
  /** Completes a move whose process was killed right after the switch, so that the new store can be opened. */
  release(address: string, moveId: string): Promise<void>
  /** Finds out which relay uses a store. Rejects if the store is gone or cannot be reached. */
  holdUnused(address: string): Promise<StoreHold>
  /** Puts the old store of a move back into use. Its data is as it was at the switch. Returns its mark; null: the store was not moved. */
  undo(address: string, nowMs: number): Promise<MoveMark | null>
}

/** A table that a move copies. */
export interface CopiedTable {
  readonly name: string
  /** The first `keyLength` values of a row are its primary key. */
  readonly keyLength: number
}

/** Reads the rows of a store as they are stored. */
export interface StoredTables {
  /** Reads rows in the order of their keys, from the first key above `after` (null: any) up to and including `upTo` (null: no limit). */
  page(
    table: CopiedTable,
    range: { readonly after: StoredRow | null; readonly upTo: StoredRow | null; readonly limit: number },
  ): Promise<readonly StoredRow[]>
  /** Reads the rows with these keys, in any order. */
  find(table: CopiedTable, keys: readonly StoredRow[]): Promise<readonly StoredRow[]>
}

/** The old store. A move copies from it while the relay goes on using it. */
export interface MoveSource extends StoredTables {
  readonly tables: readonly CopiedTable[]
  /**
   * Records in the store that a move copies it, so that the next start of a killed relay knows that it must clean up after the move. Rejects
   * if another replica is copying the store.
   */
  announce(): Promise<void>
  /** From now until the move ends, records the key of every row that changes. */
  begin(): Promise<void>
  count(table: CopiedTable): Promise<number>
  /** Returns the next recorded keys, roughly the oldest first. Read their rows only after this call, so that they include the changes. */
  changes(table: CopiedTable, limit: number): Promise<{ readonly marks: readonly number[]; readonly keys: readonly StoredRow[] }>
  /** Deletes recorded keys by the `marks` that `changes` returned. */
  forget(table: CopiedTable, marks: readonly number[]): Promise<void>
  /** Counts the recorded keys, but only up to a limit for each table, because counting millions of keys would take too long. */
  countChanges(): Promise<number>
  /** Runs `work` for at most a quarter of a second, while no other connection can change rows. Then lets them write for at least 0.1 seconds. */
  alone<T>(work: () => Promise<T>): Promise<T>
  /** Does in advance what would make the switch take longer. */
  prepareSwitch(): Promise<void>
  /** Asks all replicas that use the store to stop writing. */
  pause(): Promise<void>
  /** Returns the last ids and sequences that the store has used. */
  numbers(): Promise<StoreNumbers>
  /**
   * Runs `work` while nobody else can write. If `work` resolves, the store is marked as moved at `nowMs` and accepts no more writes. If `work`
   * rejects, nothing has changed. Rejects if others do not stop writing.
   */
  seal(work: () => Promise<void>, nowMs: number): Promise<void>
  /** Removes all that the move has added to the store, and marks the job as failed. The store stays in use. */
  abandon(failure: string, nowMs: number): Promise<void>
  close(): Promise<void>
}

/** The store to which a move copies. */
export interface MoveTarget extends StoredTables {
  /** Prepares the store: it must be empty, or contain only the copy of an unfinished move, which is deleted. Otherwise rejects. */
  claim(): Promise<void>
  /** Stores `rows` in place of the rows with these keys. If `rows` has none for a key, the old store has deleted it, so deletes it here too. */
  replace(table: CopiedTable, keys: readonly StoredRow[], rows: readonly StoredRow[]): Promise<void>
  /** Marks the copy as complete and its job as done. */
  complete(numbers: StoreNumbers, job: { readonly jobId: number; readonly done: number; readonly nowMs: number }): Promise<void>
  /** Allows a relay to open the copy. Must be called after the old store was marked as moved. */
  release(): Promise<void>
  close(): Promise<void>
}

/** The record that a move writes into the old store and the new one. */
export interface MoveMark {
  /**
   * `copying`: the store is in use and is being copied. `pausing`: the switch is under way, so nobody may write. `moved`: the other store
   * has replaced this one. `receiving`: this is the new store, which is not complete yet.
   */
  readonly state: 'copying' | 'pausing' | 'moved' | 'receiving'
  /** The id of the move, the same in both stores. */
  readonly moveId: string
  /** The other store's name in messages. */
  readonly peer: string
  /** The address of the other store: a path, or the encrypted address of a database. */
  readonly address: string
  /** When the move began; after the switch, the time of the switch. */
  readonly atMs: number
  /** The replica that moves the store. */
  readonly replicaId: number
}

export type MoveSide = Omit<MoveMark, 'state'>

/** The table of the mark exists only while a move needs it. */
export const MARK_TABLE = 'moving'

export const MARK_COLUMNS = 'state, move_id, peer, address, at_ms, replica_id'

export interface MarkRow {
  readonly state: MoveMark['state']
  readonly move_id: string
  readonly peer: string
  readonly address: string
  readonly at_ms: number
  readonly replica_id: number
}

export function decodeMark({ state, move_id, peer, address, at_ms, replica_id }: MarkRow): MoveMark {
  return { state, moveId: move_id, peer, address, atMs: at_ms, replicaId: replica_id }
}

/** Returns the values of a mark in the order of `MARK_COLUMNS`. */
export function encodeMark({ state, moveId, peer, address, atMs, replicaId }: MoveMark): [string, string, string, string, number, number] {
  return [state, moveId, peer, address, atMs, replicaId]
}

/** Throws if a store cannot be used because of a move. `name` names the store in the message. */
export function refuseMoved(mark: MoveMark | null, name: string): void {
  if (mark === null || mark.state === 'copying' || mark.state === 'pausing') return
  if (mark.state === 'receiving')
    throw new Error(
      `store: ${name} holds a part of ${mark.peer}, from a move that has not ended. Nothing was changed. ` +
        `Start the relay with the store it came from and move it again, or name another store.`,
    )
  throw new Error(
    `store: ${name} was moved to ${mark.peer} at ${new Date(mark.atMs).toISOString()} and is out of use. Nothing was changed. ` +
      'Name the new store in `store`. To go back to this one, without anything that came since: parcel-relay move-store --undo.',
  )
}

export function refuseShared(name: string, cause?: unknown): never {
  throw new Error(`store: another move has begun to fill ${name}. Name another store, or wait for that move.`, { cause })
}

export function refuseTaken(name: string, table: string): never {
  throw new Error(
    `store: ${name} is not empty (it has rows in ${table}), and a move overwrites nothing. Nothing was changed. Name another store.`,
  )
}

export const LEFT_STORES = 'left-stores'

/** Lists the stores that moves have left behind, the oldest first. */
export async function listLeftStores(session: Session): Promise<readonly LeftStore[]> {
  const kept = await loadSetting(session, LEFT_STORES)
  return kept === null ? [] : parseLeftStores(Buffer.from(kept).toString())
}

/** The longest time that the lock is held, even if the work takes longer. Writers wait longer than this before they give up. */
const HOLD_MS_MAX = 250
/** The shortest time for which the lock then stays free. A writer that waits for the lock tries again at least every 100 ms. */
const REST_MS = 110

/** A lock that keeps writers from recording. */
export interface WritersLock {
  take(): Promise<void>
  /** Does nothing if the lock is not taken. */
  release(): Promise<void>
}

/** Makes a function that runs work under the lock, with pauses for writers. If it cannot take the lock, it runs the work without it. */
export function createHoldOff({ take, release }: WritersLock): <T>(work: () => Promise<T>) => Promise<T> {
  let restUntilMs = 0
  return async (work) => {
    await pause(Math.max(0, restUntilMs - performance.now()))
    await take().catch(() => undefined)
    const timer = setTimeout(() => void release().catch(() => undefined), HOLD_MS_MAX)
    try {
      return await work()
    } finally {
      clearTimeout(timer)
      await release()
      restUntilMs = performance.now() + REST_MS
    }
  }
}

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

type ColumnKind = 'number' | 'text' | 'bytes'

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
  watchdog_breach: { columns: ['parcel_id', 'rule', 'since_ms'] },
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
