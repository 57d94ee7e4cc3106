import { randomBytes } from 'node:crypto'
import { closeSync, fchmodSync, fsyncSync, openSync, readSync, renameSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { systemCode } from '../../core/domain/errors.ts'
import { describeFailure } from '../../core/domain/system-reason.ts'
import { FILE_MODE, readKeyFile, syncFolder, writeKeyFile } from '../../core/store/sqlite/whole-file.ts'
import { isThere, onFile } from '../../regular-file.ts'
import { type BackupOrder, type BackupProgress, type PlacedBackup, refuseUnmounted } from './backup.rules.ts'
import {
  digestFile,
  fileOf,
  keyFileOf,
  lastSequenceIn,
  openFolder,
  partOf,
  placeOf,
  proveTable,
  relayIdIn,
  removeOutlived,
  removeParts,
  storedTables,
  writeManifest,
} from './backup-folder.ts'
import { removeCopy } from './copy-store.ts'

const CHUNK_BYTES = 4 * 1024 * 1024

/**
 * Makes a backup from a copy of the store: checks the copy table by table, adds the manifest, and moves the copy to the folder of backups.
 * Until the backup is whole and synced, it has the name of an incomplete one. If this function is ended early or throws, it removes the copy.
 */
export function* makeBackup(order: BackupOrder): Generator<BackupProgress, PlacedBackup> {
  try {
    const here = placeOf(order.directory)
    refuseUnmounted(order.lastPlace, here)
    const relayId = yield* proveCopy(order)
    const bytes = yield* place(order, relayId)
    const made = { name: order.name, atMs: order.madeAtMs, bytes, place: here }
    return { made, unremoved: failureOf(() => removeOutlived(order.directory, { ...order, relayId })) }
  } finally {
    removeCopy(order.copy)
  }
}

function failureOf(work: () => void): string | null {
  try {
    work()
    return null
  } catch (error) {
    return describeFailure(error)
  }
}

/** Opens the copy as any program would, checks it and counts its rows. Returns the id of the relay. */
function* proveCopy(order: BackupOrder): Generator<BackupProgress, string> {
  const placeholder = randomBytes(32).toString('hex')
  const { relayId, tables } = yield* describeCopy(order, placeholder)
  const digesting = digestFile(order.copy, placeholder)
  let turn = digesting.next()
  for (; turn.done !== true; turn = digesting.next()) yield { step: 'verifying', done: tables, total: tables }
  if (turn.value === null) throw new Error('the copy does not hold its manifest')
  const { digest, at } = turn.value
  const file = openSync(order.copy, 'r+')
  try {
    writeSync(file, digest, at)
  } finally {
    closeSync(file)
  }
  return relayId
}

/** Checks the copy and adds its manifest, with a placeholder for the digest. */
function* describeCopy(
  { copy, name, madeAtMs, version, keys, sequence }: BackupOrder,
  placeholder: string,
): Generator<BackupProgress, { readonly relayId: string; readonly tables: number }> {
  const db = new Database(copy, { fileMustExist: true })
  try {
    // Leave WAL mode, so that the backup stays one file when a program opens it.
    db.pragma('journal_mode = DELETE')
    const tables = storedTables(db)
    const rows: Record<string, number> = {}
    for (const [done, table] of tables.entries()) {
      yield { step: 'verifying', done, total: tables.length }
      rows[table] = proveTable(db, table)
    }
    const last = lastSequenceIn(db)
    if (last < sequence) throw new Error(`the copy ends at sequence ${last}, but the store was at ${sequence} before the copy was begun`)
    const relayId = relayIdIn(db)
    writeManifest(db, { name, relayId, madeAtMs, version, sequence: last, keys: [...keys], rows }, placeholder)
    return { relayId, tables: tables.length }
  } finally {
    db.close()
  }
}

/** Moves the copy and its key to the folder of backups. Returns the size of the backup in bytes. */
function* place({ copy, name, directory, keyFile }: BackupOrder, relayId: string): Generator<BackupProgress, number> {
  const [file, key] = [fileOf(directory, name), keyFileOf(directory, name)]
  const [filePart, keyPart] = [partOf(file, relayId), partOf(key, relayId)]
  const bytes = statSync(copy).size
  yield { step: 'placing', done: 0, total: bytes }
  openFolder(directory)
  removeParts(directory, relayId)
  refuseTaken(file)
  refuseTaken(key)
  let isPlaced = false
  try {
    yield* bring(copy, filePart, bytes)
    const hasKey = isThere(keyFile)
    if (hasKey) copyKey(keyFile, keyPart)
    // Place the key first, so that every backup in the folder can be restored.
    if (hasKey) renameSync(keyPart, key)
    refuseTaken(file)
    renameSync(filePart, file)
    isPlaced = true
    syncFolder(directory)
    return bytes
  } finally {
    if (!isPlaced) for (const left of [filePart, keyPart, key]) rmSync(left, { force: true })
  }
}

function refuseTaken(file: string): void {
  if (isThere(file)) throw new Error(`${file} is there already`)
}

/** Moves a file and syncs it. On the same disk it renames the file; to another disk it copies it. */
function* bring(from: string, to: string, bytes: number): Generator<BackupProgress, void> {
  try {
    renameSync(from, to)
    sync(to)
    return
  } catch (error) {
    if (systemCode(error) !== 'EXDEV') throw error
  }
  refuseLittleRoom(to, bytes)
  const [source, target] = [openSync(from, 'r'), openSync(to, 'wx', FILE_MODE)]
  try {
    fchmodSync(target, FILE_MODE)
    const chunk = Buffer.alloc(CHUNK_BYTES)
    for (let done = 0, read = readSync(source, chunk); read > 0; read = readSync(source, chunk)) {
      onFile(to, () => {
        for (let written = 0; written < read; ) written += writeSync(target, chunk, written, read - written)
      })
      done += read
      yield { step: 'placing', done, total: bytes }
    }
    onFile(to, () => fsyncSync(target))
  } finally {
    closeSync(source)
    closeSync(target)
  }
}

/** Throws if the file does not fit. Otherwise the copy would fill a disk that other programs may use too. */
function refuseLittleRoom(file: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(dirname(file))
  if (bavail * bsize < bytes)
    throw new Error(`the folder has no room (${dirname(file)}): the backup takes ${bytes} bytes, and ${bavail * bsize} are free`)
}

/** Copies the key, and throws if the file holds none: a backup with an empty key could not be restored. */
function copyKey(from: string, to: string): void {
  writeKeyFile(to, readKeyFile(from))
}

function sync(path: string): void {
  const file = openSync(path, 'r+')
  try {
    fchmodSync(file, FILE_MODE)
    onFile(path, () => fsyncSync(file))
  } finally {
    closeSync(file)
  }
}
