import { createHash, type Hash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { systemCode } from '../../core/domain/errors.ts'
import { hostOnThread } from '../../core/runtime/threads/thread.ts'
import { isDamage, statIfThere } from '../../core/store/sqlite/file.ts'
import { closeFolder, FOLDER_MODE, syncFolder } from '../../core/store/sqlite/whole-file.ts'
import { isThere } from '../../regular-file.ts'
import {
  type BackupComparison,
  type BackupFile,
  type BackupFolder,
  type BackupMaker,
  type BackupManifest,
  type BackupOrder,
  type BackupPlace,
  mayBeOf,
  outlived,
  parseManifest,
  refuseUnmounted,
} from './backup.rules.ts'
import { copyFiles } from './copy-store.ts'

/** The table that holds the manifest. Backups have it, stores do not. */
export const MANIFEST_TABLE = 'backup_manifest'

/** Reads the manifest of a backup; null: the file has no manifest, so it is no backup. */
export function readManifest(db: Database.Database): BackupManifest | null {
  const isThere = db.prepare<[string]>("select 1 from sqlite_schema where type = 'table' and name = ?").get(MANIFEST_TABLE) !== undefined
  const text = isThere ? db.prepare<[], string>(`select json from ${MANIFEST_TABLE}`).pluck().get() : undefined
  return text === undefined ? null : parseManifest(text)
}

/**
 * Adds the manifest. `digest`: what stands in place of the digest until it is computed. It is the first column, so that it lies in the file as one
 * piece, however long the manifest is.
 */
export function writeManifest(db: Database.Database, manifest: BackupManifest, digest: string): void {
  db.exec(`create table ${MANIFEST_TABLE} (digest text not null, json text not null)`)
  db.prepare(`insert into ${MANIFEST_TABLE} (digest, json) values (?, ?)`).run(digest, JSON.stringify({ ...manifest, isDigested: true }))
}

/** Reads the digest of a backup whose manifest says that there is one. */
export function readDigest(db: Database.Database): string {
  return String(db.prepare(`select digest from ${MANIFEST_TABLE}`).pluck().get())
}

/** Lists the tables of a store, except the manifest and the tables that SQLite maintains. */
export function storedTables(db: Database.Database): readonly string[] {
  return db
    .prepare<[string], string>(
      "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' and name <> ? order by name",
    )
    .pluck()
    .all(MANIFEST_TABLE)
}

/** Checks a table and its indexes, and counts the rows. Throws if the table or an index is damaged. */
export function proveTable(db: Database.Database, table: string): number {
  const found = db.prepare<[], string>(`pragma integrity_check("${table}")`).pluck().all()
  if (found.length !== 1 || found[0] !== 'ok') throw new Error(`the table ${table} is damaged: ${found.slice(0, 3).join('; ')}`)
  return Number(db.prepare(`select count(*) from "${table}"`).pluck().get())
}

/** Reads the id of the relay that wrote a store; empty: that relay has never sent an event. */
export function relayIdIn(db: Database.Database): string {
  const value = db.prepare<[], Buffer>("select value from setting where name = 'relay-id'").pluck().get()
  return value === undefined ? '' : Buffer.from(value).toString('hex')
}

/** Reads the last sequence that a store has assigned. */
export function lastSequenceIn(db: Database.Database): number {
  return Number(db.prepare("select cast(value as text) from setting where name = 'sequence'").pluck().get() ?? 0)
}

const CHUNK_BYTES = 4 * 1024 * 1024
const BLANK = '0'

/** The SHA-256 of a file in which a text, which stands there once, is replaced by zeros. So the file can hold its own digest. */
interface FileDigest {
  readonly digest: string
  /** Where the text begins. */
  readonly at: number
}

/** Computes the digest in short parts. Null: the text does not stand in the file exactly once. */
export function* digestFile(path: string, text: string): Generator<void, FileDigest | null> {
  const file = openSync(path, 'r')
  try {
    const places: number[] = []
    let tail = Buffer.alloc(0)
    for (const { chunk, at } of chunksOf(file)) {
      // The text may begin in one chunk and end in the next.
      const searched = Buffer.concat([tail, chunk])
      for (let found = searched.indexOf(text); found !== -1; found = searched.indexOf(text, found + 1))
        places.push(at - tail.byteLength + found)
      tail = searched.subarray(Math.max(0, searched.byteLength - text.length + 1))
      yield
    }
    const [place] = places
    if (place === undefined || places.length > 1) return null
    const hash = createHash('sha256')
    for (const { chunk, at } of chunksOf(file)) {
      addWithout(hash, chunk, place - at, text.length)
      yield
    }
    return { digest: hash.digest('hex'), at: place }
  } finally {
    closeSync(file)
  }
}

function addWithout(hash: Hash, chunk: Buffer, from: number, length: number): void {
  const [start, end] = [from, from + length].map((place) => Math.min(chunk.byteLength, Math.max(0, place)))
  hash.update(chunk.fill(BLANK, start, end))
}

function* chunksOf(file: number): Generator<{ readonly chunk: Buffer; readonly at: number }> {
  for (let at = 0; ; ) {
    const chunk = Buffer.alloc(CHUNK_BYTES)
    const read = readSync(file, chunk, 0, CHUNK_BYTES, at)
    if (read === 0) return
    yield { chunk: chunk.subarray(0, read), at }
    at += read
  }
}

const ENDING = '.db'
/** The most backups that are listed. Nobody needs more. */
const SHOWN_MAX = 1000

export const fileOf = (directory: string, name: string) => join(directory, `${name}${ENDING}`)
export const keyFileOf = (directory: string, name: string) => join(directory, `${name}.key`)
/**
 * Returns the name of a backup's file while it is not complete. No command takes such a file for a backup. It holds the relay, because several
 * relays may make backups in one folder at the same time.
 */
export const partOf = (file: string, relayId: string) => `${file}.${relayId.slice(0, 8)}.part`

/** Returns a folder and those that contain it, the innermost first. */
function aroundOf(directory: string): readonly string[] {
  const outer = dirname(directory)
  return outer === directory ? [directory] : [directory, ...aroundOf(outer)]
}

/** Finds where the disk of a folder is mounted. `devices`: the device of each folder around it, the innermost first; null: there is none. */
function mountIn(directory: string, devices: readonly (number | null)[]): BackupPlace {
  const around = aroundOf(directory)
  const first = devices.findIndex((device) => device !== null)
  const outside = devices.findIndex((device, at) => at > first && device !== devices[first])
  return { directory, mountedAt: (outside === -1 ? around.at(-1) : around[outside - 1]) ?? directory }
}

/** Finds where the disk of a folder of backups is mounted. If the folder is missing, it is looked for where it would be made. */
export function placeOf(directory: string): BackupPlace {
  return mountIn(
    directory,
    aroundOf(directory).map((path) => statSync(path, { throwIfNoEntry: false })?.dev ?? null),
  )
}

/**
 * Lists the backups in a folder; none if the folder is missing. A disk that does not answer blocks only this call. Throws if the disk is not
 * mounted on which the last backup was made.
 */
export async function listBackups(directory: string, lastPlace: BackupPlace | null): Promise<readonly BackupFile[]> {
  const devices = await Promise.all(aroundOf(directory).map(async (path) => (await statIfThere(path))?.dev ?? null))
  refuseUnmounted(lastPlace, mountIn(directory, devices))
  const names = await readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return []
    throw error
  })
  const keys = new Set(names.filter((name) => name.endsWith('.key')))
  const files = names.filter((name) => name.endsWith(ENDING)).slice(0, SHOWN_MAX)
  const found = await Promise.all(files.map((file) => lookAt(directory, file, keys)))
  return found.filter((one) => one !== null).toSorted((a, b) => b.madeAtMs - a.madeAtMs || (a.name < b.name ? 1 : -1))
}

async function lookAt(directory: string, file: string, keys: ReadonlySet<string>): Promise<BackupFile | null> {
  const found = await statIfThere(join(directory, file))
  if (found === null || !found.isFile()) return null
  const name = file.slice(0, -ENDING.length)
  return { name, bytes: found.size, madeAtMs: Math.round(found.mtimeMs), hasKey: keys.has(`${name}.key`) }
}

/** Like `removeCopy`, for a thread that must not block. */
async function discardCopy(file: string): Promise<void> {
  for (const path of copyFiles(file)) await rm(path, { force: true })
}

/** Makes the folder, but not its parent. If the parent is missing, the disk for backups may not be mounted. */
export function openFolder(directory: string): void {
  if (isThere(directory)) {
    if (!statSync(directory).isDirectory()) throw new Error(`${directory} is not a folder`)
    return
  }
  mkdirSync(directory, { mode: FOLDER_MODE })
  closeFolder(directory)
  syncFolder(dirname(directory))
}

/** Removes the files of incomplete backups that a kill of this relay has left. */
export function removeParts(directory: string, relayId: string): void {
  const parts = readdirSync(directory).filter((name) => ['.db', '.key'].some((ending) => name.endsWith(partOf(ending, relayId))))
  for (const name of parts) rmSync(join(directory, name), { force: true })
}

export interface Outliving {
  readonly relayId: string
  readonly keep: number
  /** The backup just made. */
  readonly name: string
  /** When it was made, epoch milliseconds. */
  readonly madeAtMs: number
}

/** Keeps the newest `keep` scheduled backups of a store, and removes the older ones with their keys. Backups of other stores in the folder stay. */
export function removeOutlived(directory: string, { relayId, keep, name: made, madeAtMs }: Outliving): void {
  const scheduled = readdirSync(directory).flatMap((file) => (file.endsWith(ENDING) ? [file.slice(0, -ENDING.length)] : []))
  const own = scheduled.filter((name) => mayBeOf(name, relayId) && madeBy(fileOf(directory, name)) === relayId)
  for (const name of outlived(own, keep, madeAtMs, made)) {
    rmSync(fileOf(directory, name), { force: true })
    rmSync(keyFileOf(directory, name), { force: true })
  }
}

/** Null: the file is no backup. Throws if it cannot be read now, as then it would never be removed. */
function madeBy(file: string): string | null {
  try {
    const db = new Database(file, { readonly: true, fileMustExist: true })
    try {
      return readManifest(db)?.relayId ?? null
    } finally {
      db.close()
    }
  } catch (error) {
    if (!isDamage(error)) throw error
    return null
  }
}

/** The data with which the backup thread is started. */
export interface BackupData {
  readonly order: BackupOrder
}

/** The functions of the backup thread that other threads can call. */
export interface BackupVerbs {
  advance: BackupMaker['advance']
  /** Stops making the backup, and removes it if it is not complete. */
  giveUp(): Promise<void>
}

/** The functions of the thread that compares backups with the store. Reading them may take long, or never end. */
export interface ComparingVerbs {
  without(request: BackupComparison): Promise<readonly string[]>
}

const YOUNG_MB = 16
/** How long the thread may take to clean up, in milliseconds. A folder that does not answer must not delay the stop of the relay. */
const GIVE_UP_MS = 2000

/** The folder of backups. Each backup gets a thread for the work that may take long or never end. */
export const backupFolder: BackupFolder = {
  list: listBackups,
  async without(request) {
    const file = new URL(`./comparing-thread${import.meta.url.slice(-3)}`, import.meta.url)
    const { verbs, end } = await hostOnThread<ComparingVerbs>(file, { name: 'comparing', data: null, youngMb: YOUNG_MB })
    try {
      return await verbs.without(request)
    } finally {
      await Promise.race([end(), pause(GIVE_UP_MS, undefined, { ref: false })])
    }
  },
  discard: discardCopy,
  async openMaker(order) {
    // Use the extension of this file: sources run as `.ts` in development and as `.js` from `dist`.
    const file = new URL(`./backup-thread${import.meta.url.slice(-3)}`, import.meta.url)
    const data: BackupData = { order }
    const { verbs, end } = await hostOnThread<BackupVerbs>(file, { name: 'backup', data, youngMb: YOUNG_MB })
    return {
      advance: verbs.advance,
      async close() {
        await Promise.race([verbs.giveUp().catch(() => undefined), pause(GIVE_UP_MS, undefined, { ref: false })])
        await Promise.race([end(), pause(GIVE_UP_MS, undefined, { ref: false })])
      },
    }
  },
}
