import { createRequire } from 'node:module'
import { onTestFinished } from 'vitest'

// Types of its own, so that the sources can be checked on a machine that has no DuckDB.
interface DuckDb {
  readonly DuckDBInstance: { create(path: string): Promise<Instance> }
}

interface Instance {
  connect(): Promise<Connection>
  closeSync(): void
}

interface Connection {
  run(sql: string): Promise<unknown>
  runAndReadAll(sql: string): Promise<{ getRowObjectsJson(): readonly Readonly<Record<string, unknown>>[] }>
  closeSync(): void
}

const require = createRequire(import.meta.url)

let opened: Promise<Connection> | null = null

/** Opens a DuckDB in memory that the whole test uses. */
async function open(): Promise<Connection> {
  const { DuckDBInstance }: DuckDb = require('@duckdb/node-api')
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  onTestFinished(() => {
    opened = null
    connection.closeSync()
    instance.closeSync()
  })
  return connection
}

/** Runs statements, and returns the rows of a query after them. DuckDB makes each row a JSON text, because its package for Node drops a leading U+FEFF. */
export async function queryDuckDb(query: string, ...before: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
  opened ??= open()
  const connection = await opened
  for (const statement of before) await connection.run(statement)
  const rows = await connection.runAndReadAll(`select to_json(found)::varchar as found from (${query}) as found`)
  return rows.getRowObjectsJson().map(({ found }): Readonly<Record<string, unknown>> => JSON.parse(String(found)))
}
