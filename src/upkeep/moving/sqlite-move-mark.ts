import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type Database from 'better-sqlite3'
import { isThere } from '../../regular-file.ts'
import { copyFiles } from '../backups/copy-store.ts'
import { addLeftStore, type LeftStore, parseLeftStores } from './store-move.rules.ts'
import {
  decodeMark,
  encodeMark,
  keyOf,
  LEFT_STORES,
  MARK_COLUMNS,
  MARK_TABLE,
  type MarkRow,
  MOVED_TABLES,
  type MovedTable,
  type MoveMark,
} from './store-moves.rows.ts'

/** Null: the store has no mark. */
export function readMark(db: Database.Database): MoveMark | null {
  const isThere = db.prepare<[string]>("select 1 from sqlite_schema where type = 'table' and name = ?").get(MARK_TABLE) !== undefined
  const row = isThere ? db.prepare<[], MarkRow>(`select ${MARK_COLUMNS} from ${MARK_TABLE}`).get() : undefined
  return row === undefined ? null : decodeMark(row)
}

export function writeMark(db: Database.Database, mark: MoveMark): void {
  db.exec(`create table if not exists ${MARK_TABLE} (id integer primary key check (id = 1), state text not null, move_id text not null,
    peer text not null, address text not null, at_ms integer not null, replica_id integer not null)`)
  db.prepare(`insert or replace into ${MARK_TABLE} (id, ${MARK_COLUMNS}) values (1, ?, ?, ?, ?, ?, ?)`).run(...encodeMark(mark))
}

export function dropMark(db: Database.Database): void {
  db.exec(`drop table if exists ${MARK_TABLE}`)
}

/** Returns the name of the table in which a move records the keys of a table's changed rows. */
export const changesOf = ({ name }: MovedTable): string => `moving_${name}`

const EVENTS = ['insert', 'update', 'delete'] as const

/** Begins to record the key of every changed row. An update records the old and the new key, because it may change the key itself. */
export function keepChanges(db: Database.Database): void {
  for (const table of MOVED_TABLES) {
    const changes = changesOf(table)
    const key = keyOf(table)
    const names = key.map(({ name }) => name).join(', ')
    const keep = (row: 'old' | 'new') => `insert into ${changes} (${names}) values (${key.map(({ name }) => `${row}.${name}`).join(', ')});`
    const kept = { insert: keep('new'), update: keep('old') + keep('new'), delete: keep('old') }
    db.exec(`create table ${changes} (seq integer primary key, ${names})`)
    for (const event of EVENTS) {
      db.exec(`create trigger ${changes}_${event} after ${event} on ${table.name} begin ${kept[event]} end`)
    }
  }
}

/** Makes the database refuse all later writes, also those of a relay that has it open. */
export function refuseWrites(db: Database.Database): void {
  for (const { name } of MOVED_TABLES)
    for (const event of EVENTS)
      db.exec(`create trigger moved_${name}_${event} before ${event} on ${name} begin select raise(abort, 'the store was moved'); end`)
}

/** Removes everything that a move adds to a store, except the mark. */
export function dropMoveParts(db: Database.Database): void {
  stopKeepingChanges(db)
  for (const table of MOVED_TABLES) {
    for (const event of EVENTS) db.exec(`drop trigger if exists moved_${table.name}_${event}`)
    db.exec(`drop table if exists ${changesOf(table)}`)
  }
}

export function stopKeepingChanges(db: Database.Database): void {
  for (const table of MOVED_TABLES) for (const event of EVENTS) db.exec(`drop trigger if exists ${changesOf(table)}_${event}`)
}

/** Whether the database has a table for the keys of a table's changed rows. */
export function hasChanges(db: Database.Database, table: MovedTable): boolean {
  return db.prepare<[string]>("select 1 from sqlite_schema where type = 'table' and name = ?").get(changesOf(table)) !== undefined
}

/** Remembers a store that a move has left behind. `current`: the name of this store. */
export function noteLeftStore(db: Database.Database, left: LeftStore, current: string): void {
  const kept = db.prepare<[string], Buffer>('select value from setting where name = ?').pluck().get(LEFT_STORES)
  const stores = addLeftStore(kept === undefined ? [] : parseLeftStores(kept.toString()), left, current)
  db.prepare('insert or replace into setting (name, value) values (?, ?)').run(LEFT_STORES, Buffer.from(JSON.stringify(stores)))
}

/** Marks the jobs of moves that have not ended as failed. */
export function failMoves(db: Database.Database, failure: string, nowMs: number): void {
  db.prepare("update job set state = 'failed', failure = ?, ended_at_ms = ? where kind = 'move' and ended_at_ms is null").run(
    failure,
    nowMs,
  )
}

/** The endings of files in which SQLite may hold data of a store. */
const LOG = /-(?:wal|shm|journal)$/
/** The endings of files that belong to a store and hold no data of parcels. */
const OTHER = /\.(?:key|tombstones)$/

/** The endings of copies that a compaction or a restore was making when it was killed. */
const UNFINISHED = ['.compact', '.restored']

/** Lists the files of the stores that restores and kills have left beside a store. They still contain the old data, a log without its store too. */
export function storesLeftBeside(path: string): readonly string[] {
  const store = basename(path)
  const isLeft = (name: string) =>
    (name.startsWith(`${store}.before-restore-`) && !OTHER.test(name)) || UNFINISHED.some((ending) => name === `${store}${ending}`)
  return readdirSync(dirname(path))
    .filter((name) => isLeft(name.replace(LOG, '')))
    .sort()
    .map((name) => join(dirname(path), name))
}

/** Lists what is still there of a store that a move has left behind. A database cannot be looked for here, so it counts as existing. */
export function filesLeftAt(name: string): readonly string[] {
  return name.startsWith('postgres://') ? [name] : copyFiles(name).filter(isThere)
}
