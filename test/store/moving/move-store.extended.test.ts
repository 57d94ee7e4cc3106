import { expect, test } from 'vitest'
import { postgres } from '../../../src/store/postgres/postgres-engine.ts'
import { sqlite } from '../../../src/store/sqlite/engine.ts'
import { copyPlace } from '../../support/store/engines.ts'
import { DIRECTIONS, moveStore, placeOf } from '../../support/store/moving.ts'
import { copyWrittenBefore, differingFromBefore, openWrittenBefore } from '../../support/store/written-before.ts'
import { expectEveryRowMoved } from './every-row-moved.ts'

// The one from SQLite to PostgreSQL is in npm test.
test.each(DIRECTIONS.filter(({ from, to }) => from.name !== 'sqlite' || to.name !== 'postgres'))(
  'a store moves from $name with every row and every number',
  ({ from, to }) => expectEveryRowMoved(from, to),
)

test('a store gives the same answers after a move to PostgreSQL and back, byte for byte', async () => {
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
