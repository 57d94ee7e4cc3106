import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, readSync, renameSync, statSync } from 'node:fs'
import { isThere, onFile } from '../../../regular-file.ts'
import { type KeptTombstones, missedTombstones, unitedTombstones } from '../../domain/history/erased.ts'
import type { TombstoneKeeping } from '../engine.ts'
import { type DecodedTombstones, decodeTombstones, encodeTombstoneLines, encodeTombstones } from '../tombstone-lines.ts'
import { writeAll, writeWhole } from './whole-file.ts'

/** Returns the path of the file with a store's tombstones. A restored backup may lack the newest tombstones, but this file has them. */
export function tombstoneFileOf(storePath: string): string {
  return `${storePath}.tombstones`
}

/**
 * Completes the file from `stored`, the tombstones in the store. After a restore the file may have tombstones that the store lacks (`missed`).
 * Throws if a line of the file cannot be read.
 */
export function openTombstoneFile(storePath: string, stored: KeptTombstones): TombstoneKeeping {
  const path = tombstoneFileOf(storePath)
  const found = readTombstoneFile(path)
  const kept = unitedTombstones(found, isOfOtherKey(found, stored) ? null : stored)
  if (isIncomplete(found, kept)) writeTombstoneFile(path, kept)
  let settledBytes: number | null = null
  const missed = missedTombstones(kept.tombstones, stored.tombstones)
  const inFile = new Map(missed.map(({ mark, erasedAtMs }) => [mark, erasedAtMs]))

  return {
    missed: { sealedKey: kept.sealedKey, tombstones: missed },
    append(buried) {
      // After a restore the store gets what it missed, which the file has.
      const tombstones = buried.filter(({ mark, erasedAtMs }) => inFile.get(mark) !== erasedAtMs)
      if (tombstones.length === 0) return
      settledBytes ??= makeWhole(path)
      const file = openSync(path, 'a')
      try {
        onFile(path, () => {
          writeAll(file, encodeTombstoneLines(tombstones))
          fsyncSync(file)
        })
      } finally {
        closeSync(file)
      }
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

/** Whether the file ends with a cut-off line, or lacks something. A store without tombstones needs no file. */
function isIncomplete(found: DecodedTombstones | null, kept: KeptTombstones): boolean {
  if (found === null) return kept.tombstones.length > 0
  return found.isCut || found.sealedKey !== kept.sealedKey || found.tombstones.length < kept.tombstones.length
}

/** Whether the marks in the file may have been made with another key than those in the store. Then the two must not be mixed. */
function isOfOtherKey(found: KeptTombstones | null, { sealedKey }: KeptTombstones): boolean {
  return found !== null && found.sealedKey !== null && sealedKey !== null && found.sealedKey !== sealedKey
}

/**
 * Makes the file if it is missing. If it ends within a line, because an earlier write was cut off and could not be undone, ends it with whole
 * lines, or the next line would become a part of that one. Returns the size of the file in bytes.
 */
function makeWhole(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || endsWithin(path, found.size))
    writeTombstoneFile(path, readTombstoneFile(path) ?? { sealedKey: null, tombstones: [] })
  return statSync(path).size
}

function endsWithin(path: string, bytes: number): boolean {
  const last = Buffer.alloc(1)
  const file = openSync(path, 'r')
  try {
    return bytes > 0 && readSync(file, last, 0, 1, bytes - 1) === 1 && last.toString() !== '\n'
  } finally {
    closeSync(file)
  }
}

export function writeTombstoneFile(path: string, kept: KeptTombstones): void {
  writeWhole(path, encodeTombstones(kept))
}

/** Gives the file another name, because its key is lost. A start would take the tombstones from it. Returns the name; null: there is no file. */
export function setTombstonesAside(storePath: string, nowMs: number): string | null {
  const path = tombstoneFileOf(storePath)
  if (!isThere(path)) return null
  const aside = `${path}.given-up-${new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')}`
  renameSync(path, aside)
  return aside
}

/** Null: the file does not exist. Throws if a line cannot be read, other than a last line that a crash has cut off. */
export function readTombstoneFile(path: string): DecodedTombstones | null {
  return isThere(path) ? decodeTombstones(readFileSync(path, 'utf8'), path) : null
}

/** Reads a tombstone file that an operator has named. Throws if the file is missing or cut off, or is no tombstone file. */
export function readGivenTombstones(path: string): KeptTombstones & { readonly sealedKey: string } {
  const given = readTombstoneFile(path)
  if (given === null) throw new Error(`${path} does not exist`)
  const { sealedKey, tombstones, isCut } = given
  if (sealedKey === null)
    throw new Error(
      `${path} is no whole file of tombstones: it lacks the line with their key. Beside an SQLite store the file is relay.db.tombstones; docs/operating.md says how to export that of a database.`,
    )
  if (isCut) throw new Error(`the last line of ${path} is cut off. Nothing was changed. Name a whole copy, or delete that line.`)
  return { sealedKey, tombstones }
}
