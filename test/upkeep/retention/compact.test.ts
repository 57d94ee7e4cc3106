import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { compactStore } from '../../../src/upkeep/retention/compact.ts'
import { hashTables } from '../../core/store/sqlite/table-hashes.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { writeSeededStore } from '../../support/store/seeded-store.ts'

async function seeded(): Promise<string> {
  const path = join(temporaryFolder(), 'relay.db')
  await writeSeededStore(path)
  return path
}

test('a compacted store is smaller, with the same rows and mode, and leaves no other file', async () => {
  const path = await seeded()
  const db = new Database(path)
  db.exec('create table room (body blob)')
  db.exec(
    'insert into room select zeroblob(100000) from (with recursive n (i) as (select 1 union all select i + 1 from n where i < 50) select i from n)',
  )
  db.exec('drop table room')
  db.close()
  const before = hashTables(path)
  writeFileSync(`${path}.compact`, 'left from one that was cut off')
  const { mode } = statSync(path)
  const done = await compactStore(path)
  expect(done).toMatchObject({ kind: 'done' })
  expect(done.kind === 'done' && done.afterBytes < done.beforeBytes - 4_000_000).toBe(true)
  expect([hashTables(path), statSync(path).mode, existsSync(`${path}.compact`)]).toEqual([before, mode, false])
})

test('a store that another program reads is not compacted', async () => {
  const path = await seeded()
  const writer = new Database(path)
  writer.exec("insert into parcel_status (status) values ('unread')")
  const reader = new Database(path)
  onTestFinished(() => {
    for (const db of [writer, reader]) db.close()
  })
  reader.exec('begin')
  reader.prepare('select count(*) from parcel').get()
  writer.exec("insert into parcel_status (status) values ('later')")
  await expect(compactStore(path)).rejects.toThrow('another program')
  expect(existsSync(`${path}.compact`)).toBe(false)
})

test('without a store there is nothing to compact', async () => {
  const path = join(temporaryFolder(), 'none.db')
  await expect(compactStore(path)).rejects.toThrow('there is no store')
  expect(existsSync(path)).toBe(false)
})
