import { expect, test } from 'vitest'
import { createStoreMove } from '../../../../src/upkeep/moving/move-store.ts'
import { sqlite } from '../../../../src/upkeep/sqlite-engine.ts'
import { contentsOf, openMove, placeOf, seededPlace, untilWaiting } from '../../../support/store/moving.ts'
import { writerOf } from '../../../support/store/other-writer.ts'
import { storedNumber } from '../../../support/store/stored-rows.ts'

const NOW_MS = Date.UTC(2026, 4, 1)

test('a move keeps at most some thousand keys of changed rows in memory', async () => {
  const [old, next] = [await seededPlace(sqlite), await placeOf(sqlite)]
  await using opened = await openMove(old, next)
  const write = writerOf(old)
  const suspects = new Set<string>()
  let most = 0
  let hasWritten = false
  const target: typeof opened.target = {
    ...opened.target,
    async page(...range) {
      // The move has begun to verify.
      if (!hasWritten) await write(100_000)
      hasWritten = true
      return await opened.target.page(...range)
    },
    async replace(table, keys, rows) {
      // Some rows change repeatedly.
      if (hasWritten) await write(700)
      if (hasWritten) for (const key of keys) suspects.add(JSON.stringify([table.name, key]))
      most = Math.max(most, suspects.size)
      await opened.target.replace(table, keys, rows)
    },
    async find(table, keys) {
      for (const key of keys) suspects.delete(JSON.stringify([table.name, key]))
      return await opened.target.find(table, keys)
    },
  }
  const move = createStoreMove({ source: opened.source, target, monotonic: () => performance.now() })
  // An operator sees each step once, however often the move returns to it.
  const seen = await untilWaiting(move)
  expect(seen).toEqual([...new Set(seen)])
  await move.switchOver({ jobId: 0, nowMs: NOW_MS })
  expect(most).toBeGreaterThan(10_000)
  expect(most).toBeLessThan(25_000)
  expect((await contentsOf(next)).contents).toEqual((await contentsOf(old)).contents)
})

test('giving up a move from sqlite after many changes lets others write meanwhile', async () => {
  const old = await seededPlace(sqlite)
  await using opened = await openMove(old, await placeOf(sqlite))
  await opened.source.begin()
  const write = writerOf(old)
  await write(100_000)
  let written = 0
  const tryToWrite = async () => {
    if (await write(1)) written += 1
  }
  const writing = setInterval(() => void tryToWrite(), 5)
  try {
    await opened.source.abandon('no more', NOW_MS)
    expect(written).toBeGreaterThan(3)
  } finally {
    clearInterval(writing)
  }
  expect(await storedNumber(old.place, "select count(*) from sqlite_schema where name like 'moving%'")).toBe(0)
})
