import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { onFile } from '../../../regular-file.ts'
import { FILE_MODE } from './permissions.ts'

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
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
