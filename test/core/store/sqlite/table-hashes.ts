import { createHash } from 'node:crypto'
import Database from 'better-sqlite3'

/** Random values that a store generates once, and the record of the clocks, which names the process. */
const SECRETS = ['token-key', 'relay-id', 'clock']
const NOT_HASHED = /^(sqlite_stat|kysely_migration)/

type Cell = null | string | number | bigint | Uint8Array

/** The hash of the rows of each table, by the name of the table. */
export type TableHashes = Readonly<Record<string, string>>

/**
 * Hashes each table of a SQLite store: SHA-256 over its rows in the order of its primary key, each value with its type, so that NULL, `''`
 * and 0 differ. It leaves out the store's secrets, the statistics of SQLite, and the times of migrations.
 */
export function hashTables(path: string): TableHashes {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    db.defaultSafeIntegers()
    const tables = db
      .prepare<[], string>("select name from sqlite_master where type = 'table' order by name")
      .pluck()
      .all()
      .filter((name) => !NOT_HASHED.test(name))
    return Object.fromEntries(tables.map((table) => [table, hashTable(db, table)]))
  } finally {
    db.close()
  }
}

function hashTable(db: Database.Database, table: string): string {
  const key = db.prepare<[string], string>('select name from pragma_table_info(?) where pk > 0 order by pk').pluck().all(table)
  const order = key.length === 0 ? 'rowid' : key.map((column) => `"${column}"`).join(', ')
  const rows = db.prepare<[], Cell[]>(`select * from "${table}" order by ${order}`).raw()
  const hash = createHash('sha256')
  for (const row of rows.iterate()) {
    if (!SECRETS.some((name) => row[0] === name)) hash.update(`${JSON.stringify(row.map(typed))}\n`)
  }
  return hash.digest('hex')
}

function typed(value: Cell): readonly [type: string, text: string] | null {
  if (value === null) return null
  if (value instanceof Uint8Array) return ['blob', Buffer.from(value).toString('hex')]
  return [typeof value, String(value)]
}
