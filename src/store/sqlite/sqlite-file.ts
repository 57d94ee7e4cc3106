import {
  closeSync,
  existsSync,
  fchmodSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { systemCode } from '../../domain/errors.ts'
import { closeFolder, FILE_MODE, FOLDER_MODE } from './sqlite-permissions.ts'

const MAGIC = 'SQLite format 3\0'
const CHUNK_BYTES = 1024 * 1024

/** Made once the database holds something, so that a database that is gone can be told from one that never was. */
const markerOf = (path: string) => `${path}.marker`
const logOf = (path: string) => `${path}-wal`

/** Makes the folder of a store, if it is not there, for nobody else, and so that it survives a power cut as the store in it does. */
export function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
  if (first === undefined) return
  for (let made = resolve(folder); made.length >= resolve(first).length; made = dirname(made)) {
    closeFolder(made)
    syncFolder(dirname(made))
  }
}

/**
 * Looks at a database file before SQLite does, because SQLite would begin anew on a file that is gone or empty and delete the log of
 * changes beside it. Throws, with what to do, rather than let that happen; changes nothing.
 */
export function refuseDamage(path: string): void {
  const bytes = sizeOf(path)
  if (bytes === null || bytes === 0) {
    const witness = existsSync(markerOf(path)) ? markerOf(path) : (sizeOf(logOf(path)) ?? 0) > 0 ? logOf(path) : null
    if (witness === null) return
    throw new Error(
      `store: ${path} is ${bytes === null ? 'gone' : 'empty'}, but ${witness} shows that it held data. Nothing was changed. ` +
        `Restore a backup; or, to begin anew, move ${basename(path)}.marker and ${basename(path)}-wal away first.`,
    )
  }
  const head = Buffer.alloc(MAGIC.length)
  const file = openSync(path, 'r')
  try {
    readSync(file, head, 0, head.length, 0)
  } finally {
    closeSync(file)
  }
  if (head.toString('latin1') !== MAGIC) throw new Error(explain(path, 'SQLITE_NOTADB'))
}

/** Notes beside the database that it holds data. */
export function leaveMarker(path: string): void {
  if (existsSync(markerOf(path))) return
  const file = openSync(markerOf(path), 'w', FILE_MODE)
  try {
    fchmodSync(file, FILE_MODE)
    writeSync(file, `${basename(path)} holds the data of a parcel relay. While this file is here, the relay never begins anew.\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  syncFolder(dirname(path))
}

/**
 * Writes the log of changes over itself and syncs it. A process that was killed after a sync had failed leaves changes that can be read
 * back but will never reach the disk: the kernel takes a page whose sync failed for written. SQLite would believe what it reads. Rewritten,
 * it is true. To be called while the write lock is held.
 */
export function rewriteLog(path: string): void {
  if ((sizeOf(logOf(path)) ?? 0) === 0) return
  const chunk = Buffer.alloc(CHUNK_BYTES)
  const file = openSync(logOf(path), 'r+')
  try {
    let at = 0
    for (let read = readSync(file, chunk, 0, CHUNK_BYTES, at); read > 0; read = readSync(file, chunk, 0, CHUNK_BYTES, at)) {
      for (let written = 0; written < read; ) written += writeSync(file, chunk, written, read - written, at + written)
      at += read
    }
    fdatasyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Says why a store could not be opened, with its path and what to do; an error that says so already is left as it is. */
export function openingFailure(path: string, error: unknown): unknown {
  const code = systemCode(error)
  return code === null ? error : new Error(explain(path, isFull(path) ? 'ENOSPC' : code), { cause: error })
}

function explain(path: string, code: string): string {
  const folder = dirname(path)
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'SQLITE_FULL')
    return `store: the disk is full: there is no room in ${folder} to open ${path} (${code}). Nothing was deleted; free some space.`
  if (code === 'SQLITE_NOTADB')
    return `store: ${path} is not a SQLite database, or its header is damaged (${code}). Nothing was changed. Restore a backup, or name another file.`
  if (code === 'EIO' || code.startsWith('SQLITE_CORRUPT') || code.startsWith('SQLITE_IOERR'))
    return `store: ${path} could not be opened (${code}): it is damaged, or the disk fails. Nothing was deleted. Look at the disk, then restore a backup if need be.`
  if (code.startsWith('SQLITE_BUSY')) return `store: another program holds ${path} locked (${code}). Close it, then start again.`
  return `store: ${path} cannot be opened for writing (${code}). The relay's user must be able to write the file and its folder ${folder}.`
}

/** A full disk shows itself in many codes. */
function isFull(path: string): boolean {
  try {
    return statfsSync(dirname(path)).bavail === 0
  } catch {
    return false
  }
}

function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
