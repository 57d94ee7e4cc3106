import { statSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { MIGRATIONS, migrate, type SqliteStep } from '../../../../src/core/store/sqlite/migrate.ts'
import { byForm } from '../../../support/runner/long-form.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'

const PARCELS = byForm(12_000, 1_000_000)

/** Adds a column and fills it. `before` is called before each batch. */
function filled(before: () => void): SqliteStep {
  return {
    up: (db) => db.schema.alterTable('parcel').addColumn('planted', 'integer').execute(),
    async backfill(db, rows) {
      before()
      const found =
        await sql`update parcel set planted = id where id in (select id from parcel where planted is null order by id limit ${rows})`.execute(
          db,
        )
      return Number(found.numAffectedRows ?? 0)
    },
  }
}

const later: SqliteStep = { up: (db) => db.schema.alterTable('parcel').addColumn('planted_later', 'integer').execute() }

async function openWithParcels() {
  const path = join(temporaryFolder(), 'relay.db')
  const db = new Database(path)
  db.pragma('journal_mode = WAL')
  await migrate(db)
  db.exec(
    `insert into parcel (id, activated_at_ms, entry_count, failures, is_full)
     with recursive n (id) as (select 1 union all select id + 1 from n where id < ${PARCELS}) select id, 0, 0, 0, 0 from n`,
  )
  db.pragma('wal_checkpoint(TRUNCATE)')
  const single = (query: string) => db.prepare(query).pluck().get()
  return { db, path, single, left: () => single('select count(*) from parcel where planted is null') }
}

test('S14: an interrupted backfill resumes after its last batch, and later steps wait', async () => {
  const { db, path, single, left } = await openWithParcels()
  const steps = (step: SqliteStep) => ({ ...MIGRATIONS, '9998-filled': step, '9999-later': later })
  let batches = 0
  const failing = filled(() => {
    if (++batches === 2) throw new Error('killed')
  })
  await expect(migrate(db, steps(failing))).rejects.toThrow(/cannot be migrated to the schema of this version: killed/)
  expect(left()).toBe(PARCELS - 5000)
  expect(single("select count(*) from pragma_table_info('parcel') where name = 'planted_later'")).toBe(0)
  const logBytes: number[] = []
  await migrate(db, steps(filled(() => void logBytes.push(statSync(`${path}-wal`).size))))
  // The WAL contains only the changes of one batch, however many rows there are.
  expect(Math.max(...logBytes)).toBeLessThan(8 * 1024 * 1024)
  expect(left()).toBe(0)
  expect(single("select count(*) from pragma_table_info('parcel') where name = 'planted_later'")).toBe(1)
  expect(single("select count(*) from setting where name = 'backfilling'")).toBe(0)
  db.close()
})

test('S14: a store with an unfinished backfill is refused by a version without that step', async () => {
  const { db, left } = await openWithParcels()
  const failing = filled(() => {
    throw new Error('killed')
  })
  await expect(migrate(db, { ...MIGRATIONS, '9998-filled': failing })).rejects.toThrow('killed')
  await expect(migrate(db)).rejects.toThrow(/it was made by a newer one/)
  expect(left()).toBe(PARCELS)
  db.close()
})
