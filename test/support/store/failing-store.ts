import { existsSync, readFileSync } from 'node:fs'
import Database from 'better-sqlite3'

/**
 * Loaded into a relay before its own code (`node --import`). While the file named by `RELAY_TEST_FAILURE` contains a SQLite error code, every write
 * transaction fails with it, as on a disk that is full, read-only or damaged.
 */
const file = process.env.RELAY_TEST_FAILURE ?? ''

/** All statements of the driver share this prototype. A statement's text shows whether it begins a write transaction. */
const statement: Database.Statement = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1'))
const { run } = statement

statement.run = function failing(this: Database.Statement, ...params: unknown[]) {
  const code = this.source === 'BEGIN IMMEDIATE' && existsSync(file) ? readFileSync(file, 'utf8') : ''
  if (code !== '') throw new Database.SqliteError('injected by a test', code)
  return run.apply(this, params)
}
