import { expect, test } from 'vitest'
import type { Engine } from '../../../src/store/contract.ts'
import { MOVED_TABLES } from '../../../src/store/moving/moved-tables.ts'
import { postgres } from '../../../src/store/postgres/postgres-engine.ts'
import { sqlite } from '../../../src/store/sqlite/sqlite-engine.ts'
import { copyPlace } from '../../support/engines.ts'
import { contentsOf, DIRECTIONS, moveStore, type Place, placeOf } from '../../support/moving.ts'
import { writeSeededStore } from '../../support/seeded-store.ts'
import { copyWrittenBefore, differingFromBefore, openWrittenBefore } from '../../support/written-before.ts'

/** A seeded store, with a row or more in every table. */
async function seededPlace(engine: Engine): Promise<Place> {
  const made = await placeOf(engine)
  await writeSeededStore(made.place, engine)
  return made
}

test.each(DIRECTIONS)(
  'a store moves from $name with every row and every number',
  async ({ from, to }) => {
    const [old, next] = [await seededPlace(from), await placeOf(to)]
    const before = await contentsOf(old)
    for (const { name } of MOVED_TABLES) expect([name, before.contents.get(name)?.length]).not.toEqual([name, 0])
    await moveStore(old, next)
    const after = await contentsOf(next)
    expect(after.contents).toEqual(before.contents)
    expect(after.numbers.sequence).toBe(before.numbers.sequence)
    for (const name of ['parcel', 'inbox', 'endpoint', 'job'] as const)
      expect(after.numbers[name]).toBeGreaterThanOrEqual(before.numbers[name])
  },
  60_000,
)

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
}, 60_000)
