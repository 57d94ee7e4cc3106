import Database from 'better-sqlite3'
import type { Pool, QueryResult } from 'pg'
import { onTestFinished } from 'vitest'
import { openPool } from '../../../src/server/postgres/postgres-pool.ts'

type StoredValue = string | number | Uint8Array | null

/** How long to wait for the lock of a writing relay. */
const LOCK_TIMEOUT_MS = 10_000

/**
 * Queries a store for data that its functions do not return. Works beside a running relay, and cannot write. `place` is the path of the file or the
 * URL of the database. On both engines `?` is the placeholder of a value.
 */
export async function storedRows<Row>(place: string, query: string, ...values: readonly StoredValue[]): Promise<readonly Row[]> {
  // The query determines the columns.
  if (isAddress(place)) return (await queryDatabase(place, query, values)).rows as Row[]
  return withFile(place, true, (db) => db.prepare<StoredValue[], Row>(query).all(...values))
}

export async function storedNumber(place: string, query: string, ...values: readonly StoredValue[]): Promise<number> {
  const [row] = await storedRows<object>(place, query, ...values)
  return Number(Object.values(row ?? {})[0])
}

export async function storedBodies(place: string): Promise<ReadonlySet<string>> {
  const rows = await storedRows<{ readonly body: Uint8Array }>(place, 'select body from inbox')
  return new Set(rows.map(({ body }) => Buffer.from(body).toString()))
}

/** Runs the engine's integrity check on the file of a store. Null: it is intact. */
export async function damageOf(place: string): Promise<string | null> {
  return withFile(place, true, (db) => {
    const found = String(db.pragma('integrity_check', { simple: true }))
    return found === 'ok' ? null : found
  })
}

/** Changes rows behind the relay's back. Returns the number of rows changed. */
export async function changeStoredRows(place: string, statement: string, ...values: readonly StoredValue[]): Promise<number> {
  if (isAddress(place)) return (await queryDatabase(place, statement, values)).rowCount ?? 0
  return withFile(place, false, (db) => db.prepare<StoredValue[]>(statement).run(...values).changes)
}

export async function pruneStoredFeed(place: string, upTo: number): Promise<void> {
  await changeStoredRows(place, 'delete from feed where sequence <= ?', upTo)
  const remember = 'insert into setting (name, value) values (?, ?) on conflict (name) do update set value = excluded.value'
  await changeStoredRows(place, remember, 'feed-pruned-to', Buffer.from(String(upTo)))
}

/** Copies the file of a store consistently, even while others write to it. */
export async function copyStore(place: string, to: string): Promise<void> {
  await changeStoredRows(place, 'vacuum into ?', to)
}

/** Runs `work` while a table is missing, to simulate a broken store. */
export async function withoutTable(place: string, table: string, work: () => Promise<void>): Promise<void> {
  await changeStoredRows(place, `alter table ${table} rename to ${table}_gone`)
  try {
    await work()
  } finally {
    await changeStoredRows(place, `alter table ${table}_gone rename to ${table}`)
  }
}

/** Runs `work` while nobody else can write to the file of a store. */
export async function whileLocked(place: string, work: () => Promise<void>): Promise<void> {
  const db = new Database(place, { fileMustExist: true, timeout: LOCK_TIMEOUT_MS })
  db.exec('begin immediate')
  try {
    await work()
  } finally {
    db.exec('rollback')
    db.close()
  }
}

/** Lets another program read the store and make its write-ahead log longer than 300 MB. Returns a function that ends the program. */
export function lengthenLog(path: string): () => void {
  const reader = new Database(path, { readonly: true })
  reader.exec('begin')
  reader.prepare('select count(*) from parcel').get()
  const writer = new Database(path)
  writer.exec('create table ballast (bytes blob)')
  for (let nth = 0; nth < 5; nth++) writer.prepare('insert into ballast values (zeroblob(?))').run(64 * 1024 * 1024)
  writer.exec('drop table ballast')
  writer.close()
  return () => void reader.close()
}

function withFile<T>(place: string, readonly: boolean, work: (db: Database.Database) => T): T {
  const db = new Database(place, { readonly, fileMustExist: true, timeout: LOCK_TIMEOUT_MS })
  try {
    return work(db)
  } finally {
    db.close()
  }
}

function isAddress(place: string): boolean {
  return place.startsWith('postgres://')
}

/** One connection per database, reused because connecting takes longer than a query. */
const pools = new Map<string, Pool>()

async function queryDatabase(place: string, query: string, values: readonly StoredValue[]): Promise<QueryResult> {
  let nth = 0
  return await poolOf(place).query(
    query.replaceAll('?', () => `$${++nth}`),
    [...values],
  )
}

function poolOf(place: string): Pool {
  const known = pools.get(place)
  if (known !== undefined) return known
  const pool = openPool(place, { connectionsMax: 1, connectTimeoutMs: LOCK_TIMEOUT_MS, onConnectionLost: () => undefined })
  pools.set(place, pool)
  onTestFinished(async () => {
    pools.delete(place)
    await pool.end()
  })
  return pool
}

/** Inserts rows into a store that no process has open, by SQL. */
export function insertRows(path: string, inserts: readonly string[]): void {
  const db = new Database(path)
  for (const insert of inserts) db.exec(insert)
  db.close()
}
