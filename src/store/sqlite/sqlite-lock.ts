import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { holdersOf } from './sqlite-identity.ts'
import { makeFile } from './sqlite-permissions.ts'

/** A relay that is stopping may need a moment to let go. */
const PATIENCE_MS = 500

export interface StoreLock {
  release(): void
}

/**
 * Makes this process the only one that writes the store at `path`, until it ends. What is locked is a side file, `{path}.lock`, which stays
 * empty and is never deleted: the lock itself lives in the kernel and goes with its process, so a kill -9 leaves nothing that blocks. The
 * database's own locks cannot serve: SQLite gives them up between transactions, and readers must be let in.
 */
export function lockStore(path: string): StoreLock {
  const lockPath = `${path}.lock`
  makeFile(lockPath)
  const db = new Database(lockPath, { timeout: PATIENCE_MS })
  try {
    // Nothing is ever written to it, and nothing should be made beside it.
    db.pragma('journal_mode = MEMORY')
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!(error instanceof Database.SqliteError) || error.code !== 'SQLITE_BUSY') throw error
    const pid = holderOf(lockPath)
    throw new Error(`store: a relay is already running on ${path}${pid === null ? '' : `, pid ${pid}`}. One store has one relay.`, {
      cause: error,
    })
  }
  return { release: () => void db.close() }
}

/** Who holds it, as the kernel says: a note in a file could be stale. Null where the kernel does not tell. */
function holderOf(lockPath: string): number | null {
  return holdersOf(statSync(lockPath).ino)?.[0] ?? null
}
