import { expect, test } from 'vitest'
import { MOVED_TABLES } from '../../../src/store/moving/moved-tables.ts'
import { postgres } from '../../../src/store/postgres/postgres-engine.ts'
import { sqlite } from '../../../src/store/sqlite/sqlite-engine.ts'
import { copyPlace } from '../../support/engines.ts'
import { contentsOf, DIRECTIONS, moveStore, placeOf, seededPlace } from '../../support/moving.ts'
import { DAY_MS } from '../../support/policy.ts'
import { changeStoredRows, storedRows } from '../../support/stored-rows.ts'
import { openStore } from '../../support/write-side.ts'
import { copyWrittenBefore, differingFromBefore, openWrittenBefore } from '../../support/written-before.ts'

test.each(DIRECTIONS)('a store moves from $name with every row and every number', async ({ from, to }) => {
  const [old, next] = [await seededPlace(from), await placeOf(to)]
  const before = await contentsOf(old)
  for (const { name } of MOVED_TABLES) expect([name, before.contents.get(name)?.length]).not.toEqual([name, 0])
  await moveStore(old, next)
  const after = await contentsOf(next)
  expect(after.contents).toEqual(before.contents)
  expect(after.numbers.sequence).toBe(before.numbers.sequence)
  for (const name of ['parcel', 'inbox', 'endpoint', 'job'] as const)
    expect(after.numbers[name]).toBeGreaterThanOrEqual(before.numbers[name])
})

test('a store gives the same answers after it was moved to PostgreSQL, and after it was moved back, byte for byte', async () => {
  const first = { engine: sqlite, place: copyWrittenBefore().path }
  // It is brought to the schema of this version.
  await (await openWrittenBefore(first.place)).close()
  const second = await placeOf(postgres)
  await moveStore(first, second)
  const third = await placeOf(sqlite)
  await moveStore({ engine: postgres, place: await copyPlace(postgres, second.place) }, third)
  // A question may start a stopped parcel's polls, so each store is asked once.
  expect(await differingFromBefore(await openWrittenBefore(second.place, postgres))).toEqual([])
  expect(await differingFromBefore(await openWrittenBefore(third.place))).toEqual([])
})

test('the calls that were made today, a pause and refused credentials hold on either engine', async () => {
  const day = Math.floor(Date.now() / DAY_MS)
  const untilMs = Date.now() + 600_000
  const refusal = { tries: 3, untilMs, mark: { salt: 'c2FsdA==', digest: 'ZGk=' } }
  const memory = { atMs: Date.now(), days: [{ day, calls: 17 }], pausedUntilMs: untilMs, tokenPausedUntilMs: null, refusal }
  const [first, second, third] = [await placeOf(sqlite), await placeOf(postgres), await placeOf(sqlite)]
  const before = await openStore(Date.now(), sqlite, first.place)
  await before.writes.rememberCarrier(memory)
  await before.writes.close()
  await moveStore(first, second)
  const [budget] = await storedRows<{ days: object }>(second.place, 'select days from carrier_budget')
  expect(budget).toEqual({ days: { [day]: 17 } })
  await changeStoredRows(second.place, `update carrier_budget set days = '{"${day}": 20}'`)
  await moveStore(second, third)
  const after = await openStore(Date.now(), sqlite, third.place)
  const kept = await after.writes.carrierMemory()
  expect(kept).toMatchObject({ days: [{ day, calls: 20 }], tokenPausedUntilMs: null, refusal: { tries: 3, mark: refusal.mark } })
  for (const ms of [kept?.pausedUntilMs, kept?.refusal?.untilMs]) expect(Math.abs((ms ?? 0) - untilMs)).toBeLessThan(1000)
})
