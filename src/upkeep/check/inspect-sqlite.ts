import { accessSync, constants } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { openingFailure, refuseDamage, refuseIrregularFiles, refuseSecondName } from '../../core/store/sqlite/file.ts'
import { behindLinks, lockStore, StoreInUse } from '../../core/store/sqlite/lock.ts'
import { refuseOtherSchema } from '../../core/store/sqlite/migrate.ts'
import { STORE_SUFFIXES } from '../../core/store/sqlite/whole-file.ts'
import { isThere } from '../../regular-file.ts'
import { readMark } from '../moving/sqlite-move-mark.ts'
import { refuseMoved } from '../moving/store-moves.rows.ts'
import { refuseHalfRestored } from '../restore/swap-store.ts'

/**
 * The state of a store. `new`: the store does not exist yet. `in_use`: a relay uses it. `pid`: the relay's process; null: the system does not
 * report it.
 */
export type InspectedStore =
  | { readonly state: 'new' | 'ready'; readonly path: string }
  | { readonly state: 'in_use'; readonly path: string; readonly pid: number | null }

/**
 * Finds out whether a relay could open the store at `given`, without making, changing or migrating anything. It takes the store's lock for a
 * moment; a relay that starts at that moment waits for the lock. If a relay could not open the store, throws the reason and what to do.
 */
export function inspectSqlite(given: string): InspectedStore {
  const path = behindLinks(given)
  try {
    refuseIrregularFiles(path)
    refuseHalfRestored(path)
    refuseDamage(path)
    refuseSecondName(path)
    if (!isThere(path)) {
      accessSync(nearestFolder(path), constants.W_OK | constants.X_OK)
      return { state: 'new', path }
    }
    for (const suffix of STORE_SUFFIXES) if (isThere(`${path}${suffix}`)) accessSync(`${path}${suffix}`, constants.R_OK | constants.W_OK)
    accessSync(dirname(resolve(path)), constants.W_OK | constants.X_OK)
    if (isThere(`${path}.lock`)) lockStore(path).release()
    refuseContent(path)
    return { state: 'ready', path }
  } catch (error) {
    if (error instanceof StoreInUse) return { state: 'in_use', path, pid: error.pid }
    throw openingFailure(path, error)
  }
}

/** Throws if the store is of a newer version, or was moved. */
function refuseContent(path: string): void {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    refuseOtherSchema(db)
    refuseMoved(readMark(db), path)
  } finally {
    db.close()
  }
}

/** Returns the nearest folder above the path that exists already. */
function nearestFolder(path: string): string {
  let folder = dirname(resolve(path))
  while (!isThere(folder) && dirname(folder) !== folder) folder = dirname(folder)
  return folder
}
