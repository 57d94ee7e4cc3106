import Database from 'better-sqlite3'
import { followLinks, openingFailure, refuseIrregularFiles } from '../../core/store/sqlite/file.ts'
import { StoreInUse } from '../../core/store/sqlite/lock.ts'
import { openOwn } from '../../core/store/sqlite/sqlite.ts'
import { isThere } from '../../regular-file.ts'
import { SQLITE_HOOKS } from '../sqlite-engine.ts'
import { dropMark, noteLeftStore, readMark, writeMark } from './sqlite-move-mark.ts'
import { type Cell, MOVE_WAS_CANCELLED, type StoredRow } from './store-move.rules.ts'
import {
  columnsOf,
  keyOf,
  MOVED_TABLES,
  type MovedTable,
  type MoveSide,
  type MoveTarget,
  movedTable,
  NOT_MOVED_BY_ENGINE,
  refuseMoved,
  refuseShared,
  refuseTaken,
  SETTING_OF_CARRIER,
  SETTING_OF_SEQUENCE,
  type StoredTables,
  uniqueAmong,
} from './store-moves.rows.ts'

/** A checkpoint starts when the WAL has this many pages, some megabytes. */
const CHECKPOINT_PAGES = 4000

/** Opens the file to which a store moves. Its lock keeps all other relays out until the file is closed or the process ends. */
export async function openSqliteMoveTarget(address: string, side: MoveSide): Promise<MoveTarget> {
  const path = followLinks(address)
  // Check before anything is written.
  lookInto(path, (db) => refuseOther(db, path))
  const { db, lock } = await openOwn(address, SQLITE_HOOKS).catch((error: unknown) => {
    if (error instanceof StoreInUse && lookInto(path, readMark)?.state === 'receiving') refuseShared(path, error)
    throw error
  })
  const prepare = createPreparer(db)
  return {
    ...createStoredTables(db),
    async claim() {
      db.transaction(() => {
        // Check again, because another move may have ended while this one waited for the lock.
        refuseOther(db, path)
        for (const { name } of MOVED_TABLES) db.exec(`delete from ${name}`)
        writeMark(db, { ...side, state: 'receiving' })
      }).immediate()
      // The commits of the copy do not wait for the disk, because the last commit of the move makes everything durable. Checkpoints during
      // the copy leave little for that commit to write.
      db.pragma('synchronous = NORMAL')
      db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    },
    async replace(copied, keys, rows) {
      const run = createReplace(prepare, movedTable(copied))
      db.transaction(() => run(keys, rows)).immediate()
    },
    async complete(numbers, { jobId, done, nowMs }) {
      db.pragma('synchronous = FULL')
      db.transaction(() => {
        if (db.prepare('select 1 from job where id = ? and ended_at_ms is not null').get(jobId) !== undefined)
          throw new Error(MOVE_WAS_CANCELLED)
        const save = db.prepare('insert or replace into setting (name, value) values (?, ?)')
        save.run(SETTING_OF_SEQUENCE, Buffer.from(String(numbers.sequence)))
        if (numbers.carrier !== null) save.run(SETTING_OF_CARRIER, Buffer.from(JSON.stringify(numbers.carrier)))
        for (const name of ['parcel', 'inbox', 'endpoint', 'delivery', 'job'] as const) {
          db.prepare('delete from sqlite_sequence where name = ?').run(name)
          db.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(name, numbers[name])
        }
        // The feed names breaches that are gone, and must not name others by their ids.
        db.prepare("delete from sqlite_sequence where name = 'watchdog_breach'").run()
        db.prepare(
          "insert into sqlite_sequence (name, seq) select 'watchdog_breach', max(coalesce((select max(id) from watchdog_breach), 0), coalesce((select max(-entry) from feed where entry < 0), 0))",
        ).run()
        noteLeftStore(db, { name: side.peer, atMs: nowMs }, address)
        db.prepare("update job set state = 'done', done = ?, ended_at_ms = ? where id = ?").run(done, nowMs, jobId)
      }).immediate()
    },
    async release() {
      dropMark(db)
    },
    async close() {
      db.close()
      lock.release()
    },
  }
}

/** Reads a file without changing it; null: the file does not exist. */
function lookInto<T>(path: string, look: (db: Database.Database) => T): T | null {
  try {
    refuseIrregularFiles(path)
  } catch (error) {
    throw openingFailure(path, error)
  }
  if (!isThere(path)) return null
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    return look(db)
  } finally {
    db.close()
  }
}

function refuseOther(db: Database.Database, path: string): void {
  const mark = readMark(db)
  if (mark?.state === 'receiving') return
  refuseMoved(mark, path)
  const tables = db.prepare<[], string>("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'").pluck().all()
  for (const name of tables) {
    if (!(name in NOT_MOVED_BY_ENGINE) && db.prepare(`select 1 from "${name}"`).get() !== undefined) refuseTaken(path, name)
  }
}

/**
 * Returns a function that deletes the rows with `keys` and inserts `rows`. A stored row with the unique key of a new row is outdated, so it is
 * deleted first. The move copies its new state later.
 */
function createReplace(prepare: ReturnType<typeof createPreparer>, table: MovedTable) {
  const remove = prepare(`delete from ${table.name} where ${matchesKey(table)}`)
  const insert = prepare(`insert into ${table.name} (${columnsOf(table)}) values (${table.columns.map(() => '?').join(', ')})`)
  const clear = createClear(prepare, table)
  return (keys: readonly StoredRow[], rows: readonly StoredRow[]): void => {
    for (const key of keys) remove.run(...key)
    for (const row of uniqueAmong(table, rows)) clear(row)
    for (const row of rows) insert.run(...row)
  }
}

function createClear(prepare: ReturnType<typeof createPreparer>, { name, columns, unique }: MovedTable): (row: StoredRow) => void {
  if (unique === null) return () => undefined
  const { whenNull } = unique
  const matches = unique.columns.map((at) => `${columns[at]?.name} = ?`)
  const conditions = whenNull === null ? matches : [...matches, `${columns[whenNull]?.name} is null`]
  const statement = prepare(`delete from ${name} where ${conditions.join(' and ')}`)
  return (row) => void statement.run(...unique.columns.map((at): Cell => row[at] ?? null))
}

export function createStoredTables(db: Database.Database): StoredTables {
  const prepare = createPreparer(db)
  return {
    async page(copied, { after, upTo, limit }) {
      const table = movedTable(copied)
      const names = keyOf(table).map(({ name }) => name)
      const parameters = `(${names.map(() => '?').join(', ')})`
      const conditions = [
        movedRowsOf(table),
        ...(after === null ? [] : [`(${names.join(', ')}) > ${parameters}`]),
        ...(upTo === null ? [] : [`(${names.join(', ')}) <= ${parameters}`]),
      ].join(' and ')
      const query = `select ${columnsOf(table)} from ${table.name} where ${conditions} order by ${names.join(', ')} limit ?`
      const rows = prepare(query).all(...(after ?? []), ...(upTo ?? []), limit)
      return rows.map((row) => canonical(table, row))
    },
    async find(copied, keys) {
      const table = movedTable(copied)
      const query = prepare(`select ${columnsOf(table)} from ${table.name} where ${movedRowsOf(table)} and ${matchesKey(table)}`)
      // Read all rows in one snapshot. Otherwise, if a unique key moves from one row to another between two reads, both rows would have it.
      const find = db.transaction(() => keys.flatMap((key) => query.all(...key)))
      return find().map((row) => canonical(table, row))
    },
  }
}

/** Makes a function that prepares each statement once. The statements return rows as lists of values. */
export function createPreparer(db: Database.Database) {
  const prepared = new Map<string, Database.Statement<Cell[], Cell[]>>()
  return (query: string): Database.Statement<Cell[], Cell[]> => {
    const known = prepared.get(query) ?? db.prepare<Cell[], Cell[]>(query)
    if (!prepared.has(query)) prepared.set(query, known.reader ? known.raw() : known)
    return known
  }
}

/** Returns the condition for the rows that a move copies. SQLite stores the last sequence as a setting, but a move copies it as a number. */
export function movedRowsOf({ name }: MovedTable): string {
  return name === 'setting' ? `name <> '${SETTING_OF_SEQUENCE}'` : 'true'
}

function matchesKey(table: MovedTable): string {
  return keyOf(table)
    .map(({ name }) => `${name} = ?`)
    .join(' and ')
}

/**
 * Turns the values of a row into values that every engine can store. SQLite accepts any value that somebody writes by hand, such as a
 * fraction of a millisecond, or a text instead of bytes.
 */
function canonical({ columns }: MovedTable, row: readonly Cell[]): StoredRow {
  return row.map((cell, at) => {
    if (typeof cell === 'number') return Math.round(cell)
    return typeof cell === 'string' && columns[at]?.kind === 'bytes' ? Buffer.from(cell) : cell
  })
}
