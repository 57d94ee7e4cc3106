import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openUnstoredFile } from '../../../src/console/events/unstored-file.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { fillUp, smallDisk } from '../../support/store/small-disk.ts'

const BYTES = 128 * 1024

function open() {
  const store = join(temporaryFolder(), 'relay.db')
  return { store, path: `${store}.unstored`, file: openUnstoredFile<string>(store) }
}

test('the file has its size and its mode from the start, and what was written last', async () => {
  const { store, path, file } = open()
  expect([statSync(path).size, statSync(path).mode & 0o777, file.read()]).toEqual([BYTES, 0o600, []])
  for (const items of [['one'], ['a longer text', 'å'.repeat(30_000)], []]) {
    await file.write(items)
    expect([openUnstoredFile(store).read(), statSync(path).size]).toEqual([items, BYTES])
  }
})

test('the last items are left out if not all fit', async () => {
  const { store, file } = open()
  const items = Array.from({ length: 1000 }, (_, at) => `${at} ${'x'.repeat(1000)}`)
  await file.write(items)
  const found = openUnstoredFile(store).read()
  expect(found.length).toBeGreaterThan(60)
  expect(found).toEqual(items.slice(0, found.length))
})

test('a write that was cut off leaves what was there before, and another file leaves nothing', async () => {
  const { store, path, file } = open()
  await file.write(['before'])
  const before = readFileSync(path)
  await file.write(['what came after'])
  const after = readFileSync(path)
  const from = before.findIndex((byte, at) => byte !== after[at])
  for (const bytes of [1, 3, 60, 100, 140]) {
    writeFileSync(path, Buffer.concat([after.subarray(0, from + bytes), before.subarray(from + bytes)]))
    expect(openUnstoredFile(store).read(), `${bytes} bytes`).toEqual(['before'])
  }
  truncateSync(path, 9)
  expect(openUnstoredFile(store).read()).toEqual([])
  expect(statSync(path).size).toBe(BYTES)
})

test('once nothing is left, nothing stays in the file', async () => {
  const { path, file } = open()
  for (const items of [['a secret'], ['a secret', 'more'], []]) await file.write(items)
  expect(readFileSync(path, 'utf8')).not.toContain('secret')
})

test('a file that was deleted is made again', async () => {
  const { store, path, file } = open()
  rmSync(path)
  await file.write(['text'])
  expect(openUnstoredFile(store).read()).toEqual(['text'])
})

testWith('a small file system')('a disk without a free byte is written to, and one without room for the file harms nothing', async () => {
  const store = join(smallDisk(1), 'relay.db')
  const file = openUnstoredFile(store)
  const ballast = fillUp(join(store, '..'))
  for (const text of ['one', 'x'.repeat(60_000), 'three']) await file.write([text])
  expect(openUnstoredFile(store).read()).toEqual(['three'])
  rmSync(`${store}.unstored`)
  writeFileSync(`${ballast}-more`, Buffer.alloc(120 * 1024))
  const late = openUnstoredFile(store)
  expect(late.read()).toEqual([])
  await expect(late.write(['text'])).rejects.toMatchObject({ code: 'ENOSPC' })
  rmSync(ballast)
  await late.write(['text'])
  expect(late.read()).toEqual(['text'])
})
