import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { compileForSqlite } from '../../../src/store/sqlite/dialect.ts'
import { definedStatements } from '../../../src/store/statement.ts'
import { NOON } from '../../support/runner/constants.ts'
import { isWholeCount } from '../../support/store/hot-statements.ts'
import { openStore } from '../../support/store/write-side.ts'

const STORE = fileURLToPath(new URL('../../../src/store', import.meta.url))
/**
 * The tables that grow. A scan of one of them stops all pushes for seconds beside a million rows. The indexes of expired and dismissed pushes have
 * few rows, and are read to count those of a reason.
 */
const IS_SCAN =
  /^SCAN (?:delivery|attempt|inbox|sighting|feed|content|composed_event|answer|identifier|operator_action)\b(?! USING INDEX inbox_(?:expired|dismissed)$)/

/** Returns the plan of every statement of the store. A module of PostgreSQL that is loaded too may have statements that SQLite cannot read. */
async function plansOfAll() {
  const names = readdirSync(STORE, { recursive: true, encoding: 'utf8' })
  const modules = names.filter((name) => name.endsWith('.ts') && !name.endsWith('-thread.ts') && !name.startsWith('postgres'))
  await Promise.all(modules.map((name) => import(join(STORE, name))))
  const { path } = await openStore(NOON)
  const db = new Database(path, { readonly: true })
  const plans = definedStatements().flatMap((one) => {
    const { sql } = compileForSqlite(one)
    const nothing = Array.from(sql.matchAll(/\?/g), () => null)
    try {
      const steps = db.prepare<unknown[], { readonly detail: string }>(`explain query plan ${sql}`).all(...nothing)
      return [{ sql, scans: steps.map(({ detail }) => detail).filter((detail) => IS_SCAN.test(detail)) }]
    } catch (error) {
      if (error instanceof Database.SqliteError) return []
      throw error
    }
  })
  db.close()
  return plans
}

// SQLite plans without statistics, and so without regard to the size of a table: an empty store shows the plans of a million rows.
test('no statement of the store reads a whole table of a million rows', async () => {
  const plans = await plansOfAll()
  expect(plans.length).toBeGreaterThan(200)
  expect(plans.filter(({ sql, scans }) => scans.length > 0 && !isWholeCount(sql))).toEqual([])
})
