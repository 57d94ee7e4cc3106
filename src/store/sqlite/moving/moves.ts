import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { MOVE_WAS_STOPPED } from '../../../domain/admin/store-move.ts'
import type { StoreMoves } from '../../moving/store-moves.ts'
import { followLinks } from '../identity.ts'
import { lockStore, StoreInUse } from '../lock.ts'
import { dropMark, dropMoveParts, failMoves, readMark } from './move-mark.ts'
import { openSqliteMoveSource } from './move-source.ts'
import { openSqliteMoveTarget } from './move-target.ts'

const LOCK_TIMEOUT_MS = 5000

/** Moves from and to database files. */
export const sqliteMoves: StoreMoves = {
  nameOf: (place) => place,
  openSource: async (place, side) => openSqliteMoveSource(followLinks(place), side),
  openTarget: (place, side) => openSqliteMoveTarget(place, side),
  async readMark(place) {
    const path = followLinks(place)
    // SQLite would take an empty file for a new one, and delete its log.
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return null
    // Read only: whoever closes a file last would write its log into it.
    const db = new Database(path, { readonly: true, fileMustExist: true, timeout: LOCK_TIMEOUT_MS })
    try {
      return readMark(db)
    } finally {
      db.close()
    }
  },
  async clear(place, nowMs) {
    const path = followLinks(place)
    withFile(path, (db) => {
      if (readMark(db)?.state === 'copying') endMove(db, nowMs)
    })
  },
  async release(place, moveId) {
    withFile(followLinks(place), (db) => {
      const mark = readMark(db)
      if (mark?.state === 'receiving' && mark.moveId === moveId) dropMark(db)
    })
  },
  async holdUnused(place) {
    const path = followLinks(place)
    if (statSync(path, { throwIfNoEntry: false }) === undefined) throw new Error(`store: ${path} is gone`)
    try {
      const lock = lockStore(path)
      return { usedBy: null, release: lock.release }
    } catch (error) {
      if (!(error instanceof StoreInUse)) throw error
      return { usedBy: error.pid === null ? 'another process' : `pid ${error.pid}`, release: () => undefined }
    }
  },
  async undo(place, nowMs) {
    return withFile(followLinks(place), (db) => {
      const mark = readMark(db)
      if (mark?.state !== 'moved') return null
      endMove(db, nowMs)
      return mark
    })
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
    return work(db)
  } finally {
    db.close()
  }
}
