import { chmodSync, closeSync, fchmodSync, openSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemCode } from '../../domain/errors.ts'

/** A store holds signing keys and personal data, so only the relay's user may read it. */
export const FILE_MODE = 0o600
export const FOLDER_MODE = 0o700
const OTHERS = 0o077

/** Suffixes of the store's files. SQLite creates its own with the mode of the database. */
export const STORE_SUFFIXES = ['', '-wal', '-shm', '-journal', '.marker', '.key', '.lock', '.tombstones', '.unstored']

/** Creates an empty file that only its owner can read, whatever the umask. Leaves an existing file as it is. */
export function makeFile(path: string): void {
  try {
    const file = openSync(path, 'wx', FILE_MODE)
    try {
      fchmodSync(file, FILE_MODE)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/** Makes a new folder inaccessible to other users. */
export function closeFolder(folder: string): void {
  chmodSync(folder, FOLDER_MODE)
}

/** Warns the operator, with the remedy, if other users can read the store at `path`. */
export function permissionWarnings(path: string): readonly string[] {
  const open = STORE_SUFFIXES.map((suffix) => resolve(`${path}${suffix}`)).filter(isOpenToOthers)
  if (open.length === 0) return []
  return [`store: other users of this machine can read the store, with its keys. Close it to them: chmod 600 ${open.map(quoted).join(' ')}`]
}

function isOpenToOthers(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat !== undefined && (stat.mode & OTHERS) !== 0
}

/** Quotes a path for a shell. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
