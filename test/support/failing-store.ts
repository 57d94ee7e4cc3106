import { existsSync, readFileSync } from 'node:fs'
import Database from 'better-sqlite3'

/**
 * Loaded into a relay before its own code (`node --import`): as long as the file `RELAY_TEST_FAILURE` holds a code of SQLite's, no transaction
 * that writes begins, and that code is why. So every way to write fails as it would on a disk that is full, read-only or damaged.
 */
const file = process.env.RELAY_TEST_FAILURE ?? ''

/** The driver's statements share one prototype; which of them begin a transaction that writes shows in their text. */
const statement: Database.Statement = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1'))
const { run } = statement

statement.run = function failing(this: Database.Statement, ...params: unknown[]) {
  const code = this.source === 'BEGIN IMMEDIATE' && existsSync(file) ? readFileSync(file, 'utf8') : ''
  if (code !== '') throw new Database.SqliteError('injected by a test', code)
  return run.apply(this, params)
}
