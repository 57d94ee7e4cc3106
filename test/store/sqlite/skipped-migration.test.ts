import { expect, test } from 'vitest'
import { skipped } from '../../../src/store/sqlite/migrations/0018-skipped.ts'
import { sqlite } from '../../../src/store/sqlite/sqlite-engine.ts'
import { openDeliveryWorld } from '../../support/delivery-world.ts'
import { storedRows } from '../../support/stored-rows.ts'
import { migrateAnew } from './taken-back.ts'

const NOON = Date.UTC(2026, 2, 1, 12)
/** As the version before skipped the first of two events. */
const BEFORE = `
  drop index delivery_skipped;
  update delivery set state = 3, reason = 'skipped', settled_at_ms = 1 where sequence = 1;
  update delivery set state = 1 where sequence = 2`

test('in a store from before, what was skipped stays so, and what waits can be skipped', async () => {
  const world = await openDeliveryWorld(sqlite, NOON, { statusOf: () => 500 })
  for (const minute of [1, 2, 3]) await world.push({ eventTime: `2026-03-01T10:0${minute}:00.000Z` })
  const list = async () =>
    (
      await world.reads.listDeliveries({ endpointId: world.id, parcelId: null, state: null, before: null, limit: 9 })
    ).deliveries.toReversed()
  const states = async () => (await list()).map(({ state, reason }) => [state, reason])
  await world.kill((path) => migrateAnew(path, BEFORE, skipped))
  await world.run(NOON + 100)
  expect(await states()).toEqual([
    ['dead', 'skipped'],
    ['retrying', null],
    ['queued', null],
  ])
  await world.writes().skipDelivery({ deliveryId: (await list())[1]?.deliveryId ?? 0 })
  await world.run(NOON + 200)
  expect((await states()).slice(1)).toEqual([
    ['dead', 'skipped'],
    ['retrying', null],
  ])
})

test('every round looks for what is skipped in an index that holds nothing else', async () => {
  const world = await openDeliveryWorld(sqlite, NOON, { statusOf: () => 200 })
  const look = 'explain query plan select id, endpoint_id from delivery where state < 2 and reason is not null and state in (0, 1)'
  const plan = await storedRows<{ readonly detail: string }>(world.path, look)
  expect(plan.map(({ detail }) => detail)).toEqual([expect.stringContaining('INDEX delivery_skipped (state=?)')])
})
