import { expect, onTestFinished, test } from 'vitest'
import { createWriteSide } from '../../../src/assembly/open-write-side.ts'
import type { PushHealth } from '../../../src/core/domain/polling/push-health.ts'
import { createCarrierModelKeeper } from '../../../src/core/flow/polling/carrier-model.ts'
import { openModelCheckpoint } from '../../../src/core/flow/polling/model-checkpoint.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { aPoll } from '../../support/history/builders.ts'
import { deliverOptions, recordOptions } from '../../support/history/policy.ts'
import { startDatabaseProxy } from '../../support/network/tcp-proxy.ts'
import { NOON } from '../../support/runner/constants.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

/** The delay of the network in milliseconds. Sending all parcels takes less time than this. */
const AWAY_MS = 20

/** Returns the number of round trips that bring polls forward when pushes fall silent, and whether the polls moved. */
async function reschedule(parcels: number) {
  let health: PushHealth = 'healthy'
  const clock = { now: () => NOON, monotonic: () => performance.now() }
  const keeper = createCarrierModelKeeper(clock)
  const model = { ...keeper, current: () => ({ ...keeper.current(), pushHealth: health }) }
  const log = { error: (fields: object) => void expect.fail(JSON.stringify(fields)) }
  const { url } = await createDatabase()
  const proxy = await startDatabaseProxy(url, { awayMs: AWAY_MS })
  const store = await postgres.openWriteStore(proxy.through)
  const reads = postgres.openReadStore(url)
  const checkpoint = await openModelCheckpoint({ store, clock, log })
  const writes = createWriteSide({ store, clock, log, checkpoint, model }, { record: recordOptions, deliver: deliverOptions })
  onTestFinished(async () => {
    await reads.close()
    await writes.close()
    await store.close()
  })
  const polls = Array.from({ length: parcels }, (_, at) => aPoll({ asked: `PA${at}`, trackingIds: [String(5000 + at)], askedAtMs: NOON }))
  await writes.record(polls.map((observation) => ({ kind: 'poll', observation, watch: true })))
  await writes.settleMissedPushes(NOON)
  const plannedAtMs = async () => (await reads.inspectParcel(`PA${parcels - 1}`))?.state.nextPollAtMs ?? 0
  const before = await plannedAtMs()
  health = 'silent'
  const tripsBefore = proxy.trips()
  await writes.settleMissedPushes(NOON)
  return { trips: proxy.trips() - tripsBefore, isForward: (await plannedAtMs()) < before }
}

test('bringing polls forward takes as many round trips for 250 parcels as for ten', async () => {
  const [few, many] = [await reschedule(10), await reschedule(250)]
  expect([few.isForward, many.isForward]).toEqual([true, true])
  // The rows of a larger set may arrive in two pieces.
  expect(many.trips).toBeLessThanOrEqual(few.trips + 2)
})
