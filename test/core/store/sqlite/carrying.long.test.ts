import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { saveSetting } from '../../../../src/core/store/settings.ts'
import { openSqliteWriter } from '../../../../src/core/store/sqlite/sqlite.ts'
import { createSqliteWriteStore } from '../../../../src/core/store/sqlite/sqlite-write-store.ts'
import { SQLITE_HOOKS } from '../../../../src/upkeep/sqlite-engine.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'

/** This value fills a whole page. */
const PAGE = Buffer.alloc(3500, 'x')

async function openFilled() {
  const path = join(temporaryFolder(), 'relay.db')
  const engine = await openSqliteWriter(path, SQLITE_HOOKS)
  const store = createSqliteWriteStore(engine)
  const look = new Database(path)
  look.pragma('wal_autocheckpoint = 0')
  onTestFinished(async () => {
    look.close()
    await engine.close()
  })
  let written = 0
  const write = (pages: number) =>
    store.transaction(async (tx) => {
      for (let page = 0; page < pages; page++) await saveSetting(tx, `page ${written++}`, PAGE)
    })
  const state = () => look.prepare<[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)').get()
  return { path, look, store, write, state }
}

test('while the writer goes on, the WAL is checkpointed and then restarted', async () => {
  const { write, state } = await openFilled()
  for (let batch = 0; batch < 40; batch++) await write(500)
  expect(state()?.log).toBeGreaterThan(20_000)
  await vi.waitFor(
    async () => {
      await write(1)
      expect(state()?.log).toBeLessThan(1000)
    },
    { interval: 50 },
  )
})

test('pages that an old reader needs are checkpointed when the reader is gone', async () => {
  const { look, write, state } = await openFilled()
  await write(1)
  look.exec('BEGIN; SELECT count(*) FROM setting')
  for (let batch = 0; batch < 44; batch++) await write(500)
  await write(1)
  look.exec('COMMIT')
  for (let batch = 0; batch < 44; batch++) await write(500)
  await vi.waitFor(
    async () => {
      await write(1)
      expect(state()?.log).toBeLessThan(1000)
    },
    { interval: 50 },
  )
})

/** Lists the locks on a file, as the system reports them. */
function locksOn(path: string): readonly string[] {
  const inode = `:${statSync(path).ino} `
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .filter((line) => line.includes(inode))
    .map((line) => line.replace(/^\d+: /, ''))
}

test.runIf(process.platform === 'linux')('checkpoints in the background sync through their own handle, and take no lock', async () => {
  const { path, write, state } = await openFilled()
  await write(1)
  const before = locksOn(path)
  expect(before).not.toEqual([])
  for (let batch = 0; batch < 10; batch++) await write(500)
  // A restarted WAL is small. If the writer has prevented the restart, most of the WAL is checkpointed.
  await vi.waitFor(
    async () => {
      await write(1)
      const { log = 0, checkpointed = 0 } = state() ?? {}
      expect(log - checkpointed).toBeLessThan(1000)
    },
    { interval: 50 },
  )
  expect(locksOn(path)).toEqual(before)
})
