import { expect, test } from 'vitest'
import { failingEndpoints } from '../../../src/store/sqlite/migrations/0009-failing-endpoints.ts'
import { sqlite } from '../../../src/store/sqlite/sqlite-engine.ts'
import { openDeliveryWorld } from '../../support/delivery-world.ts'
import { migrateAnew } from './taken-back.ts'

/** What takes the change of the schema back. */
const BEFORE = `
  drop index delivery_due;
  alter table delivery drop column round;
  alter table delivery drop column spared;
  alter table endpoint drop column failed_for_ms;
  alter table endpoint drop column failed_parcels;
  alter table endpoint drop column probe_at_ms;
  alter table endpoint drop column probes_failed;
  alter table endpoint drop column round;
  alter table endpoint drop column woken_at_ms;
  create index delivery_due on delivery (endpoint_id, next_attempt_at_ms) where state = 1`
const NOON = Date.UTC(2026, 2, 1, 12)

test('in a store from before, what was attempted waits for its time, and what was not is due at once', async () => {
  const world = await openDeliveryWorld(sqlite, NOON, { statusOf: () => 500, settings: { concurrency: 1, ratePerSecond: 1 } })
  for (const parcel of [1001, 1002, 1003]) await world.push({ trackingIds: [String(parcel)] })
  await world.run(NOON + 100)
  const attempted = new Set(world.attempts.map(({ delivery }) => delivery.sequence))
  const before = world.attempts.length
  await world.kill((path) => migrateAnew(path, BEFORE, failingEndpoints))
  const { health } = await world.endpoint()
  expect(health).toMatchObject({ failingSinceMs: NOON + 20, failedForMs: 0, failedParcels: [], probing: null, round: 1 })
  await world.run(NOON + 5000)
  const after = world.attempts.slice(before).map(({ delivery }) => delivery.sequence)
  expect(after.filter((sequence) => attempted.has(sequence))).toEqual([])
  await world.run(NOON + 5200)
  expect(world.attempts.slice(before).map(({ delivery }) => delivery.sequence)).toContain([...attempted][0])
})
