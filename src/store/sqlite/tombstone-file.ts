import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { type KeptTombstones, type MarkedTombstone, missedTombstones } from '../../domain/history/erased.ts'
import { isObject, member } from '../../domain/json-body.ts'
import type { TombstoneKeeping } from '../engine.ts'

/** Readable and writable by the relay's user alone. */
const FILE_MODE = 0o600

/** The name of the file beside a store that keeps its tombstones. A backup may be older than an erasure, but this file never is. */
export function tombstoneFileOf(storePath: string): string {
  return `${storePath}.tombstones`
}

/**
 * Opens the file that keeps tombstones beside the store. Each line is a JSON object: first the sealed key, then the tombstones. `stored`:
 * the tombstones in the store, from which a missing file is made. After a restore the file has more of them (`missed`).
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
        write(file, tombstones.map(encodeLine).join(''))
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

/** Writes the whole file again. It is replaced in one step, so a crash leaves the old file or the new one. */
export function writeTombstoneFile(path: string, { sealedKey, tombstones }: KeptTombstones): void {
  const next = `${path}.new`
  const file = openSync(next, 'w', FILE_MODE)
  try {
    write(file, `${sealedKey === null ? '' : `${JSON.stringify({ key: sealedKey })}\n`}${tombstones.map(encodeLine).join('')}`)
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

/** Reads a tombstone file; null: there is none. A line that a crash cut off is ignored, because its transaction was not committed. */
export function readTombstoneFile(path: string): KeptTombstones | null {
  if (!existsSync(path)) return null
  const lines = readFileSync(path, 'utf8').split('\n')
  const values = lines.map(parseLine).filter((value) => value !== null)
  const key = values.map((value) => member(value, 'key')).findLast((one) => typeof one === 'string')
  return { sealedKey: typeof key === 'string' ? key : null, tombstones: values.flatMap((value) => decodeLine(value) ?? []) }
}

function encodeLine({ mark, parcelId, erasedAtMs }: MarkedTombstone): string {
  return `${JSON.stringify({ mark, parcel: parcelId, erasedAt: new Date(erasedAtMs).toISOString() })}\n`
}

function parseLine(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function decodeLine(value: Readonly<Record<string, unknown>>): MarkedTombstone | null {
  const [mark, parcelId, erasedAt] = [member(value, 'mark'), member(value, 'parcel'), member(value, 'erasedAt')]
  if (typeof mark !== 'string' || typeof parcelId !== 'number' || typeof erasedAt !== 'string') return null
  const erasedAtMs = Date.parse(erasedAt)
  return Number.isFinite(erasedAtMs) ? { mark, parcelId, erasedAtMs } : null
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
