import { readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { leaveMarker } from '../../core/store/sqlite/file.ts'
import { syncFolder, writeWhole } from '../../core/store/sqlite/whole-file.ts'
import { isThere } from '../../regular-file.ts'
import { copyFiles } from '../backups/copy-store.ts'

/** How long to wait for a program that reads the old store. */
const PATIENCE_MS = 1000
/** While this file exists, a restore is replacing the files of the store, and no relay opens the store. */
const markOf = (path: string) => `${path}.restoring`

/** Where a restore has put the store that it replaced. */
export interface PutAside {
  /** The new path of the old store; null: its file was gone. */
  readonly aside: string | null
  /** The log of the old store, which holds data of it too. Empty if the log could be folded into the file. */
  readonly asideLogs: readonly string[]
}

/** The path at which a restore prepares the new store, before it replaces the store at `path`. */
export const preparedOf = (path: string) => `${path}.restored`
export const preparedKeyOf = (path: string) => `${path}.restored.key`

export function refuseHalfRestored(path: string): void {
  if (!isThere(markOf(path))) return
  throw new Error(
    `store: a restore of ${path} was interrupted. Nothing is lost: run the same "parcel-relay restore" again, and it finishes. Then start the relay.`,
  )
}

/**
 * Replaces a store with the prepared one, and keeps the old store beside it under another name. If the process is killed meanwhile, a later
 * call of `finishSwap` does the rest.
 */
export function swapStore(path: string, ending: string): PutAside {
  writeWhole(markOf(path), `${ending}\n`)
  return finishSwap(path) ?? { aside: null, asideLogs: [] }
}

/** Finishes a restore that was interrupted while it replaced the files. Returns null if no restore was interrupted. */
export function finishSwap(path: string): PutAside | null {
  if (!isThere(markOf(path))) return null
  const aside = `${path}.${readFileSync(markOf(path), 'utf8').trim()}`
  // As long as the prepared file exists, the store's own name still belongs to the old store.
  if (isThere(preparedOf(path))) {
    const places = copyFiles(aside)
    for (const [at, file] of copyFiles(path).entries()) moveAside(file, places[at] ?? aside)
    if (isThere(preparedKeyOf(path))) {
      moveAside(`${path}.key`, `${aside}.key`)
      renameSync(preparedKeyOf(path), `${path}.key`)
    }
    syncFolder(dirname(path))
    renameSync(preparedOf(path), path)
    syncFolder(dirname(path))
  }
  leaveMarker(path)
  rmSync(markOf(path))
  syncFolder(dirname(path))
  const [file = aside, ...logs] = copyFiles(aside)
  return { aside: isThere(file) ? file : null, asideLogs: logs.filter(isThere) }
}

function moveAside(from: string, to: string): void {
  if (isThere(from) && !isThere(to)) renameSync(from, to)
}

/**
 * Folds the log of a store into its file, so that whoever deletes that file has deleted all data. If that fails, as when a program reads the
 * store, the log stays beside the file.
 */
export function foldLog(path: string): void {
  try {
    const db = new Database(path, { fileMustExist: true, timeout: PATIENCE_MS })
    try {
      db.pragma('wal_checkpoint(TRUNCATE)')
    } finally {
      // SQLite deletes the log with the last connection.
      db.close()
    }
  } catch {
    // The result of the swap names the log.
  }
}

/** Keeps the prepared store while a restore is replacing the files: it may be the only store that is left under its name. */
export function removePrepared(path: string): void {
  if (isThere(markOf(path))) return
  for (const left of [...copyFiles(preparedOf(path)), preparedKeyOf(path), `${preparedKeyOf(path)}.new`]) rmSync(left, { force: true })
}

/** Returns an unused ending for the name of the old store, even if the last restore was less than a second ago. */
export function asideEnding(path: string, nowMs: number): string {
  const ending = `before-restore-${new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  return copyFiles(`${path}.${ending}`).some(isThere) ? asideEnding(path, nowMs + 1000) : ending
}
