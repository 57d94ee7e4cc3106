import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { followLinks, refuseDamage } from '../../core/store/sqlite/file.ts'
import { holdStore, StoreInUse } from '../../core/store/sqlite/lock.ts'
import { isThere } from '../../regular-file.ts'
import { refuseHalfRestored } from '../restore/swap-store.ts'
import { openSqliteMoveSource } from './move-source.ts'
import { openSqliteMoveTarget } from './move-target.ts'
import { dropMark, dropMoveParts, failMoves, noteLeftStore, readMark } from './sqlite-move-mark.ts'
import { MOVE_WAS_STOPPED } from './store-move.rules.ts'
import type { StoreMoves } from './store-moves.rows.ts'

const LOCK_TIMEOUT_MS = 5000

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
