import { expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { copyPlace } from '../../support/store/engines.ts'
import { DIRECTIONS, moveStore, placeOf } from '../../support/store/moving.ts'
import { copyWrittenBefore, differingFromBefore, openWrittenBefore } from '../../support/store/written-before.ts'
import { expectEveryRowMoved } from './every-row-moved.ts'

// Leave out the move from SQLite to PostgreSQL, because `npm test` includes it.
test.each(DIRECTIONS.filter(({ from, to }) => from.name !== 'sqlite' || to.name !== 'postgres'))(
  'a store moves from $name with every row and every number',
  ({ from, to }) => expectEveryRowMoved(from, to),
)

test('a store gives the same answers after a move to PostgreSQL and back, byte for byte', async () => {
  const first = { engine: sqlite, place: copyWrittenBefore().path }
  // Opening the store migrates it to the schema of this version.
  await (await openWrittenBefore(first.place)).close()
  const second = await placeOf(postgres)
  await moveStore(first, second)
  const third = await placeOf(sqlite)
  await moveStore({ engine: postgres, place: await copyPlace(postgres, second.place) }, third)
  // A request may start the polls of a stopped parcel, so ask each store only once.
  expect(await differingFromBefore(await openWrittenBefore(second.place, postgres))).toEqual([])
  expect(await differingFromBefore(await openWrittenBefore(third.place))).toEqual([])
})
