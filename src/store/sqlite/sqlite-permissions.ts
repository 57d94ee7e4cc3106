import { chmodSync, closeSync, fchmodSync, openSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemCode } from '../../domain/errors.ts'

/** A store holds the key that signs tokens, those of endpoints and where people's parcels are: it is for the relay's user alone. */
export const FILE_MODE = 0o600
export const FOLDER_MODE = 0o700
const OTHERS = 0o077

/** All that is kept beside a database; SQLite makes its own with the mode that the database has. */
const SUFFIXES = ['', '-wal', '-shm', '-journal', '.marker', '.key', '.lock']

/** Makes an empty file that only its owner can read, whatever the umask says; one that is there is left as it is. */
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

/** Closes a folder that was made just now to others. */
export function closeFolder(folder: string): void {
  chmodSync(folder, FOLDER_MODE)
}

/** What an operator should hear of the files of a store at `path`, with what to do. */
export function permissionWarnings(path: string): readonly string[] {
  const open = SUFFIXES.map((suffix) => resolve(`${path}${suffix}`)).filter(isOpenToOthers)
  if (open.length === 0) return []
  return [`store: other users of this machine can read the store, with its keys. Close it to them: chmod 600 ${open.map(quoted).join(' ')}`]
}

function isOpenToOthers(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat !== undefined && (stat.mode & OTHERS) !== 0
}

/** As a shell takes it. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
