import { createSqlite, type SqliteHooks } from '../core/store/sqlite/sqlite.ts'
import { createStoreCopier } from './backups/copy-store.ts'
import { openCleaner, overwriteDeleted } from './erasure/clean-storage.ts'
import { readMark } from './moving/sqlite-move-mark.ts'
import { refuseMoved } from './moving/store-moves.rows.ts'
import { refuseHalfRestored } from './restore/swap-store.ts'

/** What the folders of this wing add to the engine. */
export const SQLITE_HOOKS: SqliteHooks = {
  refuseFile: refuseHalfRestored,
  prepare: overwriteDeleted,
  refuseStore: (db, path) => refuseMoved(readMark(db), path),
  openCleaner,
  openCopier: (db) => createStoreCopier(db),
}

/** The SQLite engine that relays use. */
export const sqlite = createSqlite(SQLITE_HOOKS)
