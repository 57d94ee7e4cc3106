import { statSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { parseCarrierMemory } from '../../core/domain/polling/call-budget.ts'
import { followLinks, refuseDamage } from '../../core/store/sqlite/file.ts'
import { holdStore, StoreInUse } from '../../core/store/sqlite/lock.ts'
import { isThere } from '../../regular-file.ts'
import { refuseHalfRestored } from '../restore/swap-store.ts'
import { createPreparer, createStoredTables, movedRowsOf, openSqliteMoveTarget } from './move-target.ts'
import {
  changesOf,
  dropMark,
  dropMoveParts,
  failMoves,
  hasChanges,
  keepChanges,
  noteLeftStore,
  readMark,
  refuseWrites,
  stopKeepingChanges,
  writeMark,
} from './sqlite-move-mark.ts'
import { MOVE_WAS_STOPPED, type StoreNumbers } from './store-move.rules.ts'
import {
  CHANGES_COUNTED,
  type CopiedTable,
  createHoldOff,
  keyOf,
  MOVED_TABLES,
  type MovedTable,
  type MoveMark,
  type MoveSide,
  type MoveSource,
  movedTable,
  SETTING_OF_CARRIER,
  type StoreMoves,
} from './store-moves.rows.ts'

/** How long to wait for the write lock. The wait is normally short, because the writer's transactions are. */
const LOCK_TIMEOUT_MS = 5000

/** Opens a file to copy from it, on a separate connection, while the writer keeps writing. */
function openSqliteMoveSource(path: string, side: MoveSide): MoveSource {
  const db = new Database(path, { fileMustExist: true, timeout: LOCK_TIMEOUT_MS })
  // The mark must be on disk before the other store is used.
  db.pragma('synchronous = FULL')
  // The recorded keys of changed rows may name an erased parcel, so overwrite them when they are deleted.
  db.pragma('secure_delete = ON')
  // The relay's checkpoint thread makes the checkpoints.
  db.pragma('wal_autocheckpoint = 0')
  const prepare = createPreparer(db)
  const numberIn: NumberIn = (query) => Number(prepare(query).get()?.[0] ?? 0)
  return {
    ...createStoredTables(db),
    tables: MOVED_TABLES,
    async announce() {
      transact(db, () => writeMark(db, { ...side, state: 'copying' }))
    },
    async begin() {
      transact(db, () => {
        dropMoveParts(db)
        keepChanges(db)
      })
    },
    async count(copied) {
      const table = movedTable(copied)
      return numberIn(`select count(*) from ${table.name} where ${movedRowsOf(table)}`)
    },
    async changes(copied, limit) {
      const table = movedTable(copied)
      const names = keyOf(table).map(({ name }) => name)
      const rows = prepare(`select seq, ${names.join(', ')} from ${changesOf(table)} order by seq limit ?`).all(limit)
      return { marks: rows.map(([seq]) => Number(seq)), keys: rows.map(([, ...key]) => key) }
    },
    async forget(copied: CopiedTable, marks) {
      const forget = prepare(`delete from ${changesOf(movedTable(copied))} where seq = ?`)
      const forgetAll = () => {
        for (const mark of marks) forget.run(mark)
      }
      if (db.inTransaction) forgetAll()
      else transact(db, forgetAll)
    },
    async countChanges() {
      const countOf = (table: MovedTable) => `(select count(*) from (select 1 from ${changesOf(table)} limit ${CHANGES_COUNTED}))`
      return numberIn(`select ${MOVED_TABLES.map(countOf).join(' + ')}`)
    },
    alone: createHoldOff({
      take: async () => void db.prepare('BEGIN IMMEDIATE').run(),
      release: async () => {
        if (db.inTransaction) commitAfter(db, () => undefined)
      },
    }),
    prepareSwitch: async () => undefined,
    // Nothing to do: only this relay writes to the file, and it stops writing before a switch.
    pause: async () => undefined,
    numbers: async () => lastNumbers(numberIn, (query) => prepare(query).get()?.[0]?.toString() ?? null),
    seal: (work, nowMs) => seal(db, work, { ...side, state: 'moved', atMs: nowMs }),
    async abandon(failure, nowMs) {
      await dropChanges(db)
      transact(db, () => {
        dropMoveParts(db)
        dropMark(db)
        failMoves(db, failure, nowMs)
      })
    },
    async close() {
      db.close()
    },
  }
}

/** How many recorded keys are deleted at a time. This takes some milliseconds. */
const CHANGES_DROPPED = 10_000
const REST_MS = 20

type NumberIn = (query: string) => number
type TextIn = (query: string) => string | null

function lastNumbers(numberIn: NumberIn, textIn: TextIn): StoreNumbers {
  const lastOf = (table: string) => numberIn(`select seq from sqlite_sequence where name = '${table}'`)
  return {
    sequence: numberIn("select cast(cast(value as text) as integer) from setting where name = 'sequence'"),
    parcel: lastOf('parcel'),
    endpoint: lastOf('endpoint'),
    job: lastOf('job'),
    inbox: Math.max(lastOf('inbox'), numberIn('select max(id) from inbox')),
    delivery: Math.max(lastOf('delivery'), numberIn('select max(id) from delivery')),
    // Null also for a record of another format. A move then copies the setting unchanged.
    carrier: parseCarrierMemory(textIn(`select cast(value as text) from setting where name = '${SETTING_OF_CARRIER}'`) ?? ''),
  }
}

async function seal(db: Database.Database, work: () => Promise<void>, mark: MoveMark): Promise<void> {
  db.prepare('BEGIN IMMEDIATE').run()
  try {
    await work()
    dropMoveParts(db)
    refuseWrites(db)
    writeMark(db, mark)
    db.exec('COMMIT')
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function transact(db: Database.Database, work: () => void): void {
  db.prepare('BEGIN IMMEDIATE').run()
  commitAfter(db, work)
}

/** Deletes recorded keys in parts, so that a writer never waits long. */
async function dropChanges(db: Database.Database): Promise<void> {
  transact(db, () => stopKeepingChanges(db))
  for (const changes of MOVED_TABLES.filter((table) => hasChanges(db, table)).map(changesOf)) {
    const some = db.prepare(`delete from ${changes} where seq in (select seq from ${changes} limit ${CHANGES_DROPPED})`)
    while (some.run().changes === CHANGES_DROPPED) await pause(REST_MS)
  }
}

/** Runs `work` and commits the open transaction. If either fails, rolls back, so that the lock on the file always ends. */
function commitAfter(db: Database.Database, work: () => void): void {
  try {
    work()
    db.exec('COMMIT')
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK')
    throw error
  }
}

export const sqliteMoves: StoreMoves = {
  nameOf: (address) => address,
  openSource: async (address, side) => openSqliteMoveSource(followLinks(address), side),
  openTarget: (address, side) => openSqliteMoveTarget(address, side),
  async readMark(address) {
    const path = followLinks(address)
    // SQLite would treat an empty file as a new database, and delete its WAL.
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return null
    // Open it read-only, because the last connection to close a file would checkpoint its WAL.
    const db = new Database(path, { readonly: true, fileMustExist: true, timeout: LOCK_TIMEOUT_MS })
    try {
      return readMark(db)
    } finally {
      db.close()
    }
  },
  async clear(address, nowMs) {
    const path = followLinks(address)
    withFile(path, (db) => {
      if (readMark(db)?.state === 'copying') endMove(db, nowMs)
    })
  },
  async release(address, moveId) {
    withFile(followLinks(address), (db) => {
      const mark = readMark(db)
      if (mark?.state === 'receiving' && mark.moveId === moveId) dropMark(db)
    })
  },
  async holdUnused(address) {
    try {
      const { lock } = holdStore(address, (path) => {
        if (!isThere(path)) throw new Error(`store: ${path} is gone`)
      })
      return { usedBy: null, release: lock.release }
    } catch (error) {
      if (!(error instanceof StoreInUse)) throw error
      return { usedBy: error.pid === null ? 'another process' : `pid ${error.pid}`, release: () => undefined }
    }
  },
  async undo(address, nowMs) {
    const { path, lock } = holdStore(address, (file) => {
      refuseHalfRestored(file)
      refuseDamage(file)
    })
    try {
      return withFile(path, (db) => {
        const mark = readMark(db)
        if (mark?.state !== 'moved') return null
        endMove(db, nowMs)
        noteLeftStore(db, { name: mark.peer, atMs: nowMs }, address)
        return mark
      })
    } finally {
      lock.release()
    }
  },
}

function endMove(db: Database.Database, nowMs: number): void {
  db.transaction(() => {
    dropMoveParts(db)
    dropMark(db)
    failMoves(db, MOVE_WAS_STOPPED, nowMs)
  }).immediate()
}

function withFile<T>(path: string, work: (db: Database.Database) => T): T {
  const db = new Database(path, { fileMustExist: true, timeout: LOCK_TIMEOUT_MS })
  try {
    db.pragma('synchronous = FULL')
    db.pragma('secure_delete = ON')
    return work(db)
  } finally {
    db.close()
  }
}
