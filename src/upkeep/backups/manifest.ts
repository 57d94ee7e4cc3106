import { createHash, type Hash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { type BackupManifest, parseManifest } from './backup.rules.ts'

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
