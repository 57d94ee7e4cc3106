import { expect, test, vi } from 'vitest'
import { postgres } from '../../../../src/server/postgres/postgres-engine.ts'
import { createStoreMove } from '../../../../src/upkeep/moving/move-store.ts'
import { sqlite } from '../../../../src/upkeep/sqlite-engine.ts'
import { LONG } from '../../../support/runner/long-form.ts'
import { engines } from '../../../support/store/engines.ts'
import { contentsOf, DIRECTIONS, openMove, type Place, placeOf, seededPlace, untilWaiting } from '../../../support/store/moving.ts'
import { writerOf } from '../../../support/store/other-writer.ts'
import { openTestPool } from '../../../support/store/postgres-pool.ts'
import { changeStoredRows, storedNumber } from '../../../support/store/stored-rows.ts'

const NOW_MS = Date.UTC(2026, 4, 1)

test.each(DIRECTIONS.filter(({ from, to }) => LONG || from !== to))(
  'a move from $name ends although others write faster than it copies',
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
      { timeout: 240_000, interval: 1 },
    )
    await move.switchOver({ jobId: 0, nowMs: NOW_MS })
    expect((await contentsOf(next)).contents).toEqual((await contentsOf(old)).contents)
  },
)

test.each(engines)('a move from $name soon lets others write while it waits for its new store', async (engine) => {
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
  await vi.waitFor(async () => expect(await write(4)).toBe(true), { timeout: 60_000, interval: 20 })
  answer()
  expect(await working).toEqual({ wasHeldOff: true, changes: expect.toSatisfy((count: number) => count >= 4) })
  // Then others may write for at least 100 ms before the move locks the source again.
  const endedMs = performance.now()
  expect((await source.alone(async () => performance.now())) - endedMs).toBeGreaterThanOrEqual(100)
})

/** Copies a store, and calls `whenCopied` just before the copy is compared. */
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

test.each(engines)('a move from $name goes on when thousands of rows are deleted before the comparison', async (engine) => {
  const [old, next] = [await seededPlace(engine), await placeOf(engine)]
  await writerOf(old)(5000)
  await moveWith(old, next, () => changeStoredRows(old.place, "delete from setting where name like 'flood-%'"))
  expect((await contentsOf(next)).contents).toEqual((await contentsOf(old)).contents)
})

test.each(engines)('a move to $name fails when another program adds thousands of rows to the copy', async (engine) => {
  const [old, next] = [await seededPlace(engine), await placeOf(engine)]
  await expect(moveWith(old, next, () => writerOf(next)(5000))).rejects.toThrow('the copy has rows in setting that the move did not copy')
  await expect(engine.openWriteStore(next.place)).rejects.toThrow('holds a part of')
})

test('a change that commits after a change with a higher number is copied too', async () => {
  const [old, next] = [await seededPlace(postgres), await placeOf(postgres)]
  await using opened = await openMove(old, next)
  const { source, move } = opened
  await untilWaiting(move)
  const late = await openTestPool(old.place).connect()
  await late.query("begin; insert into parcel_status (status) values ('late')")
  await changeStoredRows(old.place, "insert into parcel_status (status) values ('early')")
  while ((await source.countChanges()) > 0) await move.advance()
  await late.query('commit')
  late.release()
  await move.switchOver({ jobId: 0, nowMs: NOW_MS })
  expect((await contentsOf(next)).contents).toEqual((await contentsOf(old)).contents)
  expect(await storedNumber(next.place, "select count(*) from parcel_status where status in ('late', 'early')")).toBe(2)
})

test('a move gets as far as its switch while the server vacuums a table', async () => {
  const [old, next] = [await seededPlace(postgres), await placeOf(sqlite)]
  await using opened = await openMove(old, next)
  await opened.move.advance()
  const vacuuming = await openTestPool(old.place).connect()
  await vacuuming.query('begin; lock table delivery in share update exclusive mode')
  await untilWaiting(opened.move)
  await vacuuming.query('rollback')
  vacuuming.release()
  await opened.move.switchOver({ jobId: 0, nowMs: NOW_MS })
  expect((await contentsOf(next)).contents).toEqual((await contentsOf(old)).contents)
})
