import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { saveSetting } from '../../../../src/core/store/settings.ts'
import { roomNear } from '../../../../src/core/store/sqlite/file.ts'
import { type BackupOrder, scheduledName } from '../../../../src/upkeep/backups/backup.rules.ts'
import { listBackups } from '../../../../src/upkeep/backups/backup-folder.ts'
import { createStoreCopier } from '../../../../src/upkeep/backups/copy-store.ts'
import { makeBackup } from '../../../../src/upkeep/backups/make-backup.ts'
import { sqlite } from '../../../../src/upkeep/sqlite-engine.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { openBareStore } from '../../../support/store/engines.ts'
import { contentsOf, seededPlace } from '../../../support/store/moving.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'

/** Makes a database of more than 2,000 pages, with an open connection. */
function largeFile() {
  const path = join(temporaryFolder(), 'relay.db')
  const db = new Database(path)
  onTestFinished(() => void db.close())
  db.pragma('journal_mode = WAL')
  db.exec('create table rows (id integer primary key, value blob)')
  const insert = db.prepare('insert into rows (value) values (?)')
  db.transaction(() => {
    for (let nth = 0; nth < 2000; nth++) insert.run(Buffer.alloc(4000, nth % 251))
  })()
  return { path, db, add: () => void insert.run(Buffer.alloc(4000, 1)) }
}

function open(path: string) {
  const db = new Database(path, { readonly: true })
  onTestFinished(() => void db.close())
  return db
}

test('a copy includes what the copying connection writes meanwhile, and does not start over', async () => {
  const { path, db, add } = largeFile()
  const copier = createStoreCopier(db)
  const seen: number[] = []
  const copying = copier.copy(`${path}.backup`)
  const writing = async () => {
    for (let at = copier.progress(); at !== null; at = copier.progress()) {
      seen.push(at.done)
      add()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await Promise.all([copying, writing()])
  expect(seen.length).toBeGreaterThan(10)
  expect(seen).toEqual(seen.toSorted((a, b) => a - b))
  const count = (of: Database.Database) => Number(of.prepare('select count(*) from rows').pluck().get())
  const copy = open(`${path}.backup`)
  expect(count(copy)).toBeGreaterThan(2010)
  expect(count(db) - count(copy)).toBeLessThanOrEqual(1)
  expect(copy.pragma('integrity_check', { simple: true })).toBe('ok')
})

test('a copy can be read by nobody else from its first byte, whatever the umask', async () => {
  const umask = process.umask(0)
  onTestFinished(() => void process.umask(umask))
  const { path, db } = largeFile()
  const copier = createStoreCopier(db)
  const modes = new Set<number>()
  const copying = copier.copy(`${path}.backup`)
  for (; copier.progress() !== null; await new Promise((resolve) => setImmediate(resolve)))
    for (const suffix of ['', '-journal']) {
      const found = statSync(`${path}.backup${suffix}`, { throwIfNoEntry: false })
      if (found !== undefined) modes.add(found.mode & 0o777)
    }
  await copying
  expect([...modes]).toEqual([0o600])
})

test('no step of a copy prevents checkpoints of the WAL', async () => {
  const { path, db, add } = largeFile()
  const copier = createStoreCopier(db)
  const copying = copier.copy(`${path}.backup`)
  const other = new Database(path)
  onTestFinished(() => void other.close())
  let left = 0
  for (; copier.progress() !== null; await new Promise((resolve) => setImmediate(resolve))) {
    add()
    const [state] = other.pragma('wal_checkpoint(PASSIVE)') as { log: number; checkpointed: number }[]
    left = Math.max(left, (state?.log ?? 0) - (state?.checkpointed ?? 0))
  }
  await copying
  expect(left).toBe(0)
})

test('a copy that is stopped, or whose store is closed, fails and leaves nothing', async () => {
  const stopped = largeFile()
  const copier = createStoreCopier(stopped.db)
  const copying = copier.copy(`${stopped.path}.backup`)
  copier.stop()
  await expect(copying).rejects.toThrow('the copy was stopped')
  expect([existsSync(`${stopped.path}.backup`), copier.progress()]).toEqual([false, null])

  const closed = largeFile()
  const other = createStoreCopier(closed.db).copy(`${closed.path}.backup`)
  closed.db.close()
  await expect(other).rejects.toThrow('not open')
  expect(existsSync(`${closed.path}.backup`)).toBe(false)
})

const orderOf = (copy: string, directory: string): BackupOrder => {
  const given = {
    name: 'first',
    madeAtMs: 1000,
    version: '1',
    keys: [],
    keyFile: '/nowhere/relay.db.key',
    sequence: 0,
    keep: 2,
    lastPlace: null,
  }
  return { ...given, copy, directory }
}

test('a backup of a store with rows in every table contains all of them', async () => {
  const { place } = await seededPlace(sqlite)
  const before = await contentsOf({ engine: sqlite, place })
  const copy = `${place}.backup`
  copyFileSync(place, copy)
  const directory = temporaryFolder()
  const work = makeBackup(orderOf(copy, directory))
  const steps = new Set<string>()
  let turn = work.next()
  for (; turn.done !== true; turn = work.next()) steps.add(turn.value.step)
  expect([...steps]).toEqual(['verifying', 'placing'])
  const file = join(directory, 'first.db')
  const made = { name: 'first', atMs: 1000, bytes: statSync(file).size, place: { directory, mountedAt: expect.any(String) } }
  expect(turn.value).toEqual({ made, unremoved: null })
  expect([existsSync(copy), existsSync(`${file}-wal`)]).toEqual([false, false])
  const after = await contentsOf({ engine: sqlite, place: file })
  expect(after).toEqual(before)
})

test('S15: a damaged copy, or one that lacks earlier commits, does not become a backup', async () => {
  const { place } = await seededPlace(sqlite)
  const directory = temporaryFolder()
  const finish = (order: BackupOrder) => {
    const work = makeBackup(order)
    for (let turn = work.next(); turn.done !== true; turn = work.next());
  }
  const late = `${place}.late`
  copyFileSync(place, late)
  expect(() => finish({ ...orderOf(late, directory), sequence: 1e9 })).toThrow(/the copy ends at sequence \d+/)
  const damaged = `${place}.damaged`
  copyFileSync(place, damaged)
  const db = new Database(damaged)
  // Change an index so that it no longer fits its rows, as a lost write might.
  db.unsafeMode()
  db.pragma('writable_schema = on')
  db.exec("update sqlite_schema set sql = replace(sql, 'due_at_ms', 'found_at_ms') where name = 'expected_push_by_due'")
  db.close()
  expect(() => finish(orderOf(damaged, directory))).toThrow('expected_push is damaged')
  expect([existsSync(late), existsSync(damaged), existsSync(join(directory, 'first.db'))]).toEqual([false, false, false])
})

/** Makes a scheduled backup of a relay with this id, in a folder that several relays may use. */
async function scheduledBackup(directory: string, relayId: string, madeAtMs: number, until: 'placed' | 'copied' = 'placed') {
  const { place } = await seededPlace(sqlite)
  await changeStoredRows(place, `insert or replace into setting (name, value) values ('relay-id', x'${relayId}')`)
  const copy = `${place}.backup`
  copyFileSync(place, copy)
  const work = makeBackup({ ...orderOf(copy, directory), name: scheduledName(madeAtMs, relayId), madeAtMs })
  for (let turn = work.next(); turn.done !== true; turn = work.next()) if (turn.value.step === 'placing' && until === 'copied') return work
  return work
}

test('relays that make backups in one folder at the same second do not disturb each other', async () => {
  const directory = temporaryFolder()
  const first = await scheduledBackup(directory, 'aaaaaaaa', 1000, 'copied')
  first.next()
  await scheduledBackup(directory, 'bbbbbbbb', 1000)
  for (let turn = first.next(); turn.done !== true; turn = first.next());
  const names = ['aaaaaaaa', 'bbbbbbbb'].map((relayId) => `${scheduledName(1000, relayId)}.db`)
  expect(readdirSync(directory).sort()).toEqual(names)
})

test('backups made while the clock was ahead do not remove those made after it', async () => {
  const directory = temporaryFolder()
  const [now, ahead] = [Date.UTC(2026, 0, 1), Date.UTC(2027, 0, 1)]
  for (const atMs of [ahead, ahead + 1000, now, now + 1000, now + 2000]) await scheduledBackup(directory, 'aaaaaaaa', atMs)
  const kept = [now + 1000, now + 2000, ahead, ahead + 1000].map((atMs) => `${scheduledName(atMs, 'aaaaaaaa')}.db`)
  expect(readdirSync(directory).sort()).toEqual(kept)
})

test('a store whose key file is empty is not backed up with it', async () => {
  const { place } = await seededPlace(sqlite)
  const directory = temporaryFolder()
  copyFileSync(place, `${place}.backup`)
  writeFileSync(`${place}.key`, '')
  const work = makeBackup({ ...orderOf(`${place}.backup`, directory), keyFile: `${place}.key` })
  expect(() => {
    for (let turn = work.next(); turn.done !== true; turn = work.next());
  }).toThrow(`${place}.key does not hold a key`)
  expect(readdirSync(directory)).toEqual([])
})

test('a backup that is abandoned between its steps leaves nothing', async () => {
  const { place } = await seededPlace(sqlite)
  const copy = `${place}.backup`
  copyFileSync(place, copy)
  const directory = temporaryFolder()
  const work = makeBackup(orderOf(copy, directory))
  let turn = work.next()
  while (turn.done !== true && turn.value.step !== 'placing') turn = work.next()
  work.return({ made: { name: '', atMs: 0, bytes: 0 }, unremoved: null })
  expect([existsSync(copy), existsSync(join(directory, 'first.db'))]).toEqual([false, false])
})

test('an open store copies itself with everything committed', async () => {
  const { place, store } = await openBareStore(sqlite)
  await store.transaction((tx) => saveSetting(tx, 'a', Buffer.from('1')))
  await store.copier?.copy(`${place}.backup`)
  const copy = open(`${place}.backup`)
  expect(copy.prepare("select value from setting where name = 'a'").pluck().get()).toEqual(Buffer.from('1'))
  expect(readFileSync(`${place}.backup`).subarray(0, 15).toString()).toBe('SQLite format 3')
})

test('a folder of backups with a file that cannot be looked at is unreadable, not empty', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'first.db'), '')
  expect(await listBackups(folder, null)).toMatchObject([{ name: 'first' }])
  symlinkSync('second.db', join(folder, 'second.db'))
  await expect(listBackups(folder, null)).rejects.toThrow('ELOOP')
  const loop = join(temporaryFolder(), 'loop')
  symlinkSync(loop, loop)
  await expect(listBackups(loop, null)).rejects.toThrow('ELOOP')
})

test('free space is measured on the disk of the folder, or not at all', async () => {
  const loop = join(temporaryFolder(), 'loop')
  symlinkSync(loop, loop)
  await expect(roomNear(join(loop, 'relay.db'))).rejects.toThrow('ELOOP')
  const { freeBytes, diskBytes } = await roomNear(join(temporaryFolder(), 'none', 'relay.db'))
  expect([freeBytes > 0, diskBytes >= freeBytes]).toEqual([true, true])
})
