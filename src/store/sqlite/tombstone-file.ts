import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { type KeptTombstones, missedTombstones } from '../../domain/history/erased.ts'
import type { TombstoneKeeping } from '../engine.ts'
import { decodeTombstones, encodeTombstoneLines, encodeTombstones } from '../tombstone-lines.ts'

const FILE_MODE = 0o600

/** Returns the path of the file with a store's tombstones. A restored backup may lack the newest tombstones, but this file has them. */
export function tombstoneFileOf(storePath: string): string {
  return `${storePath}.tombstones`
}

/**
 * If the file is missing, it is made from `stored`, the tombstones in the store. After a restore the file may have tombstones that the store
 * lacks (`missed`).
 */
export function openTombstoneFile(storePath: string, stored: KeptTombstones): TombstoneKeeping {
  const path = tombstoneFileOf(storePath)
  let settledBytes: number | null = null
  if (stored.tombstones.length > 0 && !existsSync(path)) writeTombstoneFile(path, stored)
  const kept = readTombstoneFile(path) ?? stored

  return {
    missed: { sealedKey: kept.sealedKey, tombstones: missedTombstones(kept.tombstones, stored.tombstones) },
    append(tombstones) {
      if (tombstones.length === 0) return
      const isNew = !existsSync(path)
      settledBytes ??= isNew ? 0 : statSync(path).size
      const file = openSync(path, 'a', FILE_MODE)
      try {
        write(file, encodeTombstoneLines(tombstones))
      } finally {
        closeSync(file)
      }
      if (isNew) syncFolder(path)
    },
    undo() {
      if (settledBytes === null) return
      const file = openSync(path, 'r+')
      try {
        ftruncateSync(file, settledBytes)
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
      settledBytes = null
    },
    settle() {
      settledBytes = null
    },
    replaceKey(sealedKey) {
      writeTombstoneFile(path, { tombstones: [], ...readTombstoneFile(path), sealedKey })
    },
  }
}

/** Writes a new file, and then renames it over the old one. So after a crash, either the old or the new file is there, complete. */
export function writeTombstoneFile(path: string, kept: KeptTombstones): void {
  const next = `${path}.new`
  const file = openSync(next, 'w', FILE_MODE)
  try {
    write(file, encodeTombstones(kept))
  } finally {
    closeSync(file)
  }
  renameSync(next, path)
  syncFolder(path)
}

function write(file: number, text: string): void {
  writeSync(file, text)
  fsyncSync(file)
}

/** Null: the file does not exist. */
export function readTombstoneFile(path: string): KeptTombstones | null {
  return existsSync(path) ? decodeTombstones(readFileSync(path, 'utf8')) : null
}

/** Reads a tombstone file that an operator has named. Throws if the file is missing, or is no tombstone file. */
export function readGivenTombstones(path: string): KeptTombstones & { readonly sealedKey: string } {
  const given = readTombstoneFile(path)
  if (given === null) throw new Error(`${path} does not exist`)
  const { sealedKey, tombstones } = given
  if (sealedKey === null)
    throw new Error(
      `${path} is no file of tombstones. Beside an SQLite store it is relay.db.tombstones; docs/operating.md says how to export that of a database.`,
    )
  return { sealedKey, tombstones }
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
