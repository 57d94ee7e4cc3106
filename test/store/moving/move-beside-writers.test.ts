import { expect, test, vi } from 'vitest'
import { createStoreMove } from '../../../src/flow/admin/move-store.ts'
import type { Engine } from '../../../src/store/contract.ts'
import { sqlite } from '../../../src/store/sqlite/sqlite-engine.ts'
import { engines } from '../../support/engines.ts'
import { contentsOf, MAIN_DIRECTIONS, openMove, type Place, placeOf, untilWaiting } from '../../support/moving.ts'
import { writerOf } from '../../support/other-writer.ts'
import { writeSeededStore } from '../../support/seeded-store.ts'
import { changeStoredRows } from '../../support/stored-rows.ts'

const NOW_MS = Date.UTC(2026, 4, 1)

async function seededPlace(engine: Engine): Promise<Place> {
  const made = await placeOf(engine)
  await writeSeededStore(made.place, engine)
  return made
}

test.each(MAIN_DIRECTIONS)(
  'a move from $name ends although others write faster than it copies, because it lets them wait',
  async ({ from, to }) => {
    const [old, next] = [await seededPlace(from), await placeOf(to)]
    await using opened = await openMove(old, next)
    const write = writerOf(old)
    const target: typeof opened.target = {
      ...opened.target,
      async replace(...batch) {
        await write(1000)
        await opened.target.replace(...batch)
      },
    }
    const move = createStoreMove({ source: opened.source, target, monotonic: () => performance.now() })
    await vi.waitFor(
      async () => {
        await write(200)
        expect(await move.advance()).toMatchObject({ step: 'waiting' })
      },
      { timeout: 90_000, interval: 1 },
    )
    await move.switchOver({ jobId: 0, nowMs: NOW_MS })
    expect((await contentsOf(next)).contents).toEqual((await contentsOf(old)).contents)
  },
  120_000,
)

test.each(engines)('a move from $name that waits for its new store lets others write after a moment', async (engine) => {
  const old = await seededPlace(engine)
  await using opened = await openMove(old, await placeOf(sqlite))
  const { source } = opened
  await source.begin()
  const write = writerOf(old)
  const [setting] = source.tables.filter(({ name }) => name === 'setting')
  if (setting === undefined) throw new Error('there is no such table')
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  await write(1)
  const working = source.alone(async () => {
    const beganMs = performance.now()
    const hasWritten = await write(3)
    const tookMs = performance.now() - beganMs
    await answered
    const { marks } = await source.changes(setting, 1000)
    await source.forget(setting, marks)
    return { wasHeldOff: !hasWritten || tookMs > 250, changes: marks.length }
  })
  await vi.waitFor(async () => expect(await write(4)).toBe(true), { timeout: 5000, interval: 20 })
  answer()
  expect(await working).toEqual({ wasHeldOff: true, changes: expect.toSatisfy((count: number) => count >= 4) })
  // Then others have their time before the next.
  const endedMs = performance.now()
  expect((await source.alone(async () => performance.now())) - endedMs).toBeGreaterThanOrEqual(100)
})

test('a move keeps no more than some thousand keys of changed rows in memory', async () => {
  const [old, next] = [await seededPlace(sqlite), await placeOf(sqlite)]
  await using opened = await openMove(old, next)
  const write = writerOf(old)
  const suspects = new Set<string>()
  let most = 0
  let hasWritten = false
  const target: typeof opened.target = {
    ...opened.target,
    async page(...range) {
      // It has begun to verify.
      if (!hasWritten) await write(100_000)
      hasWritten = true
      return await opened.target.page(...range)
    },
    async replace(table, keys, rows) {
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
  while ((await move.advance()).step !== 'waiting');
  await move.switchOver({ jobId: 0, nowMs: NOW_MS })
  expect([most > 10_000, most < 25_000]).toEqual([true, true])
  expect((await contentsOf(next)).contents).toEqual((await contentsOf(old)).contents)
})

/** Copies a store to which something happens when the copy is about to be compared. */
async function moveWith(old: Place, next: Place, whenCopied: () => Promise<unknown>): Promise<void> {
  await using opened = await openMove(old, next)
  let isCopied = false
  const target: typeof opened.target = {
    ...opened.target,
    async page(...range) {
      if (!isCopied) await whenCopied()
      isCopied = true
      return await opened.target.page(...range)
    },
  }
  const move = createStoreMove({ source: opened.source, target, monotonic: () => performance.now() })
  await untilWaiting(move)
  await move.switchOver({ jobId: 0, nowMs: NOW_MS })
}

test.each(engines)('a move from $name goes on when thousands of rows are deleted before they are compared', async (engine) => {
  const [old, next] = [await seededPlace(engine), await placeOf(engine)]
  await writerOf(old)(5000)
  await moveWith(old, next, () => changeStoredRows(old.place, "delete from setting where name like 'flood-%'"))
  expect((await contentsOf(next)).contents).toEqual((await contentsOf(old)).contents)
})

test.each(engines)('a move to $name fails when somebody else adds thousands of rows to the copy', async (engine) => {
  const [old, next] = [await seededPlace(engine), await placeOf(engine)]
  await expect(moveWith(old, next, () => writerOf(next)(5000))).rejects.toThrow('the copy has rows in setting that nobody has copied')
  await expect(engine.openWriteStore(next.place)).rejects.toThrow('holds a part of')
})
