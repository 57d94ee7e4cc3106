import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { migratePostgres, STEPS } from '../../../src/store/postgres/postgres-migrate.ts'
import { carrierTimes } from '../../../src/store/sqlite/migrations/0014-carrier-times.ts'
import { migrate } from '../../../src/store/sqlite/sqlite-migrate.ts'
import { createDatabase } from '../../support/postgres-database.ts'
import { openTestPool } from '../../support/postgres-pool.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { migrateAnew } from './taken-back.ts'

const HEARD = Date.UTC(2026, 2, 1, 12)
const MINUTE_MS = 60_000
const AHEAD = HEARD + 120 * MINUTE_MS
const YEAR_9999 = Date.UTC(9999, 11, 31)

/** Parcels as a version before has left them: id, time of the newest entry, when it was last heard of, its next poll. */
const BEFORE: readonly (readonly [id: number, latestMs: number | null, heardMs: number | null, nextPollMs: number | null])[] = [
  [1, AHEAD, HEARD, AHEAD],
  [2, YEAR_9999, HEARD, YEAR_9999],
  [3, AHEAD, HEARD, HEARD - MINUTE_MS],
  [4, AHEAD, HEARD, null],
  [5, HEARD + 5 * MINUTE_MS, HEARD, AHEAD],
  [6, HEARD - MINUTE_MS, HEARD, AHEAD],
  [7, null, null, AHEAD],
]

/** The id, the time that counts for the newest entry if that is another, the next poll. */
const AFTER = [
  [1, HEARD, HEARD],
  [2, HEARD, HEARD],
  [3, HEARD, HEARD - MINUTE_MS],
  [4, HEARD, null],
  [5, null, AHEAD],
  [6, null, AHEAD],
  [7, null, AHEAD],
]

const COLUMNS = 'id, latest_at_ms, heard_at_ms, next_poll_at_ms, latest_status, revived_at_ms, entry_count, failures, is_full'
const rest = (latestMs: number | null) => [latestMs === null ? null : 'Created', HEARD, 1, 0, 0]
const READ = 'select id, latest_learnt_at_ms as learnt, next_poll_at_ms as due from parcel order by id'

test('6.1: polls that a time over five minutes ahead had planned are due once SQLite is migrated, all others stay', async () => {
  const path = join(temporaryFolder(), 'relay.db')
  const made = new Database(path)
  await migrate(made)
  const add = made.prepare(`insert into parcel (${COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  for (const row of BEFORE) add.run(...row, ...rest(row[1]))
  made.close()
  await migrateAnew(path, 'alter table parcel drop column latest_learnt_at_ms', carrierTimes)
  const db = new Database(path, { readonly: true })
  expect(db.prepare(READ).raw().all()).toEqual(AFTER)
  db.close()
})

test('6.1: polls that a time over five minutes ahead had planned are due once PostgreSQL is migrated, all others stay', async () => {
  const pool = openTestPool((await createDatabase('nothing')).url)
  const before = STEPS.findIndex(({ servesFrom }) => servesFrom === 8)
  await migratePostgres(pool, 'here', STEPS.slice(0, before))
  for (const row of BEFORE) {
    await pool.query(`insert into parcel (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, [...row, ...rest(row[1])])
  }
  await migratePostgres(pool, 'here')
  const { rows } = await pool.query<{ id: number; learnt: number | null; due: number | null }>(READ)
  expect(rows.map(({ id, learnt, due }) => [id, learnt, due])).toEqual(AFTER)
})
