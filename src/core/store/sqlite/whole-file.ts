import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, fchmodSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { onFile, readRegular } from '../../../regular-file.ts'
import { systemCode } from '../../domain/errors.ts'

/**
 * Writes a new file beside `path`, syncs it and renames it to `path`. So after a crash or on a full disk, either the file that was there or
 * the new one is there, complete. Only the owner can read it.
 */
export function writeWhole(path: string, content: string | Uint8Array): void {
  const next = `${path}.new`
  try {
    // A kill may have left it.
    rmSync(next, { force: true })
    const file = openSync(next, 'wx', FILE_MODE)
    try {
      fchmodSync(file, FILE_MODE)
      onFile(path, () => {
        writeAll(file, content)
        fsyncSync(file)
      })
    } finally {
      closeSync(file)
    }
    renameSync(next, path)
  } catch (error) {
    rmSync(next, { force: true })
    throw error
  }
  syncFolder(dirname(path))
}

/** Writes all bytes. A single call of the system may write only a part of them, for example if the disk becomes full. */
export function writeAll(file: number, content: string | Uint8Array): void {
  const bytes = Buffer.from(content)
  for (let written = 0; written < bytes.byteLength; ) written += writeSync(file, bytes, written)
}

/** Makes the names of the files in a folder survive a power cut. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    onFile(folder, () => fsyncSync(handle))
  } finally {
    closeSync(handle)
  }
}

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

const KEY_BYTES = 32

/**
 * Reads and makes the key that encrypts the secrets in a store if the config names no key. The key is in a file beside the store. Only the
 * owner of the file can read it.
 */
export function keyFileBeside(storePath: string) {
  const path = `${storePath}.key`

  function read(): Uint8Array | null {
    try {
      return readKeyFile(path)
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return null
      throw error
    }
  }

  return {
    path,
    name: basename(path),
    read,
    readOrMake(): Uint8Array {
      const known = read()
      if (known !== null) return known
      const key = randomBytes(KEY_BYTES)
      writeKeyFile(path, key)
      return key
    },
  }
}

/** Throws if the file is missing, or does not hold a key, such as an empty file that a full disk has left. */
export function readKeyFile(path: string): Buffer {
  const key = Buffer.from(readRegular(path).toString().trim(), 'base64')
  if (key.byteLength === KEY_BYTES) return key
  throw new Error(
    `${path} does not hold a key. Put a copy of the right one there, or move the file away if nothing was ever encrypted with it.`,
  )
}

/** Null: the file is missing or damaged. Throws if it cannot be read now. */
export function readKeyIfPossible(path: string): Buffer | null {
  try {
    return readKeyFile(path)
  } catch (error) {
    if (![null, 'ENOENT'].includes(systemCode(error))) throw error
    return null
  }
}

/** Nothing is encrypted with a key that a power cut or a full disk destroys, because the file is on the disk, whole, when this returns. */
export function writeKeyFile(path: string, key: Uint8Array): void {
  writeWhole(path, `${Buffer.from(key).toString('base64')}\n`)
}
