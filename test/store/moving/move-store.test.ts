import { expect, test } from 'vitest'
import { postgres } from '../../../src/store/postgres/postgres-engine.ts'
import { sqlite } from '../../../src/store/sqlite/sqlite-engine.ts'
import { copyPlace } from '../../support/engines.ts'
import { moveStore, placeOf } from '../../support/moving.ts'
import { DAY_MS } from '../../support/policy.ts'
import { changeStoredRows, storedRows } from '../../support/stored-rows.ts'
import { openStore } from '../../support/write-side.ts'
import { copyWrittenBefore, differingFromBefore, openWrittenBefore } from '../../support/written-before.ts'
import { expectEveryRowMoved } from './every-row-moved.ts'

test('a store moves from sqlite to postgres with every row and every number', () => expectEveryRowMoved(sqlite, postgres))

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
