import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { sqlite } from '../../../../src/upkeep/sqlite-engine.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { allStatements, mayReadAll } from '../../../support/store/all-statements.ts'
import { BOUNDED } from '../../../support/store/bounded-tables.ts'
import { openStore } from '../../../support/store/write-side.ts'

/** What a plan may scan besides small tables: lists of parameters, parts of the statement that have a limit, and indexes of few rows. */
const IS_PART = new RegExp(
  [
    '^SCAN CONSTANT ROW',
    '^SCAN \\S+(?: EXISTS)? VIRTUAL TABLE',
    '^SCAN (?:\\(subquery-\\d+\\)|holder|dead|halving|looked|named|near|seen|some|waiting)$',
    // The newest 300 rows, and the count of a table that has a thousand.
    '^SCAN kept$',
    '^SCAN job USING INDEX job_(?:unended|end_untold)$',
  ].join('|'),
)
const tableOf = (step: string) => /^SCAN (\S+)/.exec(step)?.[1] ?? ''
const isScan = (step: string) => step.startsWith('SCAN') && !IS_PART.test(step) && !(tableOf(step) in BOUNDED)

// SQLite plans without statistics, and so without regard to the size of a table: an empty store shows the plans of a million rows.
test('no statement of the store reads a whole table of a million rows', async () => {
  const { path } = await openStore(NOON)
  const db = new Database(path, { readonly: true })
  onTestFinished(() => void db.close())
  const statements = await allStatements(sqlite)
  expect(statements.length).toBeGreaterThan(250)
  const scans = statements.flatMap((sql) => {
    const nothing = Array.from(sql.matchAll(/\?/g), () => null)
    const steps = db.prepare<unknown[], { readonly detail: string }>(`explain query plan ${sql}`).all(...nothing)
    const found = steps.map(({ detail }) => detail).filter(isScan)
    return found.length === 0 ? [] : [{ sql, found }]
  })
  expect(scans.filter(({ sql }) => !mayReadAll(sql))).toEqual([])
  // Each exception is still needed.
  expect(scans.filter(({ sql }) => mayReadAll(sql)).length).toBeGreaterThan(4)
})
