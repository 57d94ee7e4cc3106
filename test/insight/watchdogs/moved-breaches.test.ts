import { expect, test } from 'vitest'
import { openWatched } from '../../support/insight/open-watched.ts'
import { DAY_MS, NOON } from '../../support/runner/constants.ts'
import { DIRECTIONS, moveStore, placeOf } from '../../support/store/moving.ts'
import { changeStoredRows, storedRows } from '../../support/store/stored-rows.ts'

test.each(DIRECTIONS)('9.6: after a move from $name breaches get ids that no event of the feed has named', async ({ from, to }) => {
  const before = await placeOf(from)
  const store = await openWatched(from, undefined, before.place)
  for (const id of ['MOVED001', 'MOVED002', 'MOVED003']) await store.scan('Ingested', NOON, { trackingIds: [id] })
  store.pass(3 * DAY_MS)
  await store.look()
  expect(await store.told()).toHaveLength(3)
  // As a join does with one of two equal breaches. The feed still names it.
  await changeStoredRows(before.place, 'delete from watchdog_breach where id = (select max(id) from watchdog_breach)')
  const nowMs = store.now()
  await store.writes.close()
  await store.reads.close()
  const after = await placeOf(to)
  await moveStore(before, after)
  const moved = await openWatched(to, undefined, after.place, false)
  moved.setClock(nowMs)
  expect(await moved.told()).toHaveLength(2)
  await moved.scan('Ingested', nowMs, { trackingIds: ['MOVED004'] })
  moved.pass(3 * DAY_MS)
  await moved.look()
  // The third parcel is told again, because nobody knows any more that it was.
  expect(await moved.told()).toHaveLength(4)
  const ids = await storedRows<{ readonly id: number }>(after.place, 'select id from watchdog_breach order by id')
  expect(ids.map(({ id }) => Number(id))).toEqual([1, 2, 4, 5])
})
