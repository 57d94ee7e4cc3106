import { statSync } from 'node:fs'
import Database from 'better-sqlite3'
import { followLinks, holdersOf, identityOf, openingFailure, refuseIrregularFiles, refuseSecondName } from './file.ts'
import { makeFile } from './whole-file.ts'

/** How long to wait for the lock. A relay that is stopping needs a moment to release it. */
const PATIENCE_MS = 500

export interface StoreLock {
  /** Locks the file again if it was deleted or replaced. Rejects with `StoreInUse` if another process has locked the new file. */
  renew(): Promise<void>
  release(): void
}

export class StoreInUse extends Error {
  override readonly name = 'StoreInUse'
  /** The process id of the other writer; null: this system does not report it. */
  readonly pid: number | null

  constructor(path: string, pid: number | null, cause: unknown) {
    super(`store: a relay is already running on ${path}${pid === null ? '' : `, pid ${pid}`}. One store has one relay.`, { cause })
    this.pid = pid
  }
}

/**
 * Makes this process the only writer of the store at `path`. Locks a separate file, `{path}.lock`, which stays empty and is never deleted. The
 * kernel drops the lock when the process ends, so even `kill -9` leaves no stale lock. The database's own locks are not enough: SQLite
 * releases them between transactions, and a lock that stayed would keep readers out.
 */
export function lockStore(path: string): StoreLock {
  let held = lockFile(path, PATIENCE_MS)
  let isReleased = false
  return {
    async renew() {
      const found = await identityOf(`${path}.lock`)
      if (isReleased || found === held.identity) return
      const before = held
      held = lockFile(path, 0)
      before.db.close()
    },
    release() {
      isReleased = true
      held.db.close()
    },
  }
}

function lockFile(path: string, patienceMs: number): { readonly db: Database.Database; readonly identity: string } {
  const lockPath = `${path}.lock`
  makeFile(lockPath)
  const db = new Database(lockPath, { timeout: patienceMs })
  try {
    // Nothing is ever written to the file. With the journal in memory, SQLite creates no file beside it.
    db.pragma('journal_mode = MEMORY')
    db.exec('BEGIN EXCLUSIVE')
    const { dev, ino } = statSync(lockPath, { bigint: true })
    return { db, identity: `${dev}:${ino}` }
  } catch (error) {
    db.close()
    if (!(error instanceof Database.SqliteError) || error.code !== 'SQLITE_BUSY') throw error
    throw new StoreInUse(path, holderOf(lockPath), error)
  }
}

/** Asks the kernel which process has the lock, because a pid in a file could be stale. Null: the kernel does not tell. */
function holderOf(lockPath: string): number | null {
  return holdersOf(statSync(lockPath).ino)?.[0] ?? null
}

/** A store that only this process may write to or replace, until the lock is released. */
export interface HeldStore {
  /** The file behind all symbolic links. The lock, the WAL, the key and the tombstones are beside this file. */
  readonly path: string
  readonly lock: StoreLock
}

/**
 * Makes this process the only one that may write to a store or replace its files, under whatever name it is given. The relay and every command
 * that opens a store begin with this. `admit` looks at the file before the lock is taken, and throws if the work may not go on. Throws
 * `StoreInUse` while another process holds the store.
 */
export function holdStore(given: string, admit: (path: string) => void): HeldStore {
  const path = behindLinks(given)
  try {
    refuseIrregularFiles(path)
    admit(path)
    refuseSecondName(path)
    return { path, lock: lockStore(path) }
  } catch (error) {
    throw openingFailure(path, error)
  }
}

/** Like `followLinks`, with an error that names the path, the cause and the remedy. */
export function behindLinks(given: string): string {
  try {
    return followLinks(given)
  } catch (error) {
    throw openingFailure(given, error)
  }
}
