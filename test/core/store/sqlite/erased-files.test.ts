import { copyFileSync, readFileSync, statSync, truncateSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { eventually } from '../../../faults/world.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { filesThatHold } from '../../../support/store/all-rows.ts'
import { changeStoredRows, storedRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

const WORDS = ['GONE0001', 'PLANTED']

async function open(place: string | null = null) {
  const store = await openStore(NOON, undefined, place)
  await store.writes.useTombstoneKey(Buffer.alloc(32, 1))
  const { writes } = store
  const erase = async (identifier: string) => {
    await writes.eraseParcels({ identifiers: [identifier], nowMs: store.now(), dryRun: false })
    await writes.endErasures({ identifiers: await writes.unfinishedErasures(), isLate: false, unreadable: 0 })
  }
  return { ...store, erase }
}

test('while a reader holds the WAL, cleaning is pending; the relay truncates the WAL later', async () => {
  const { path, writes, push, erase } = await open()
  await push({ trackingIds: ['GONE0001'], texts: { en: 'PLANTED' } })
  const reader = new Database(path, { readonly: true })
  onTestFinished(() => void reader.close())
  reader.exec('begin')
  reader.prepare('select count(*) from parcel').get()
  await erase('GONE0001')
  expect(await writes.cleanStorage()).toMatchObject({ state: 'pending', because: expect.stringContaining('reader') })
  expect(filesThatHold(path, WORDS)).not.toEqual([])
  reader.exec('commit')
  await eventually(async () => filesThatHold(path, WORDS).length === 0)
  await vi.waitFor(async () => expect(await writes.cleanStorage()).toEqual({ state: 'clean' }))
})

test('a file without a mark is never clean until it is compacted', async () => {
  const first = await open()
  await first.push({ trackingIds: ['GONE0001'] })
  await first.writes.cleanStorage()
  await changeStoredRows(first.path, 'delete from parcel_status')
  const db = new Database(first.path)
  db.pragma('user_version = 0')
  db.close()
  await first.erase('GONE0001')
  expect(await first.writes.cleanStorage()).toMatchObject({ state: 'pending', because: expect.stringContaining('prune --compact') })
})

test('every erased name is in the tombstone file before the erasure is committed', async () => {
  const { path, push, erase } = await open()
  await push({ trackingIds: ['GONE0001', 'GONE0002'] })
  await erase('GONE0002')
  const marks = (await storedRows<{ mark: string }>(path, 'select mark from tombstone order by mark')).map(({ mark }) => mark)
  const lines = readFileSync(`${path}.tombstones`, 'utf8').trim().split('\n')
  expect(lines.map((line) => /"mark":"([^"]+)"/.exec(line)?.[1] ?? '').sort()).toEqual(marks)
  expect(statSync(`${path}.tombstones`).mode & 0o777).toBe(0o600)
})

test('a line of the tombstone file that a crash cut off is ignored', async () => {
  const { path, push, erase, writes } = await open()
  await push({ trackingIds: ['GONE0001'] })
  await erase('GONE0001')
  const file = `${path}.tombstones`
  const place = `${path}.copy`
  copyFileSync(file, `${place}.tombstones`)
  truncateSync(`${place}.tombstones`, statSync(file).size - 5)
  expect(await writes.missedErasures()).toMatchObject({ count: 0 })
  const other = await openStore(NOON, undefined, place)
  expect(await other.writes.missedErasures()).toMatchObject({ count: 0 })
})
