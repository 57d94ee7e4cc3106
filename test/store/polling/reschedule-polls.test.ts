import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { PushHealth } from '../../../src/domain/polling/push-health.ts'
import { createCarrierModelKeeper } from '../../../src/flow/polling/carrier-model.ts'
import { openModelCheckpoint } from '../../../src/flow/polling/model-checkpoint.ts'
import { createReadStore } from '../../../src/store/read-store.ts'
import { openSqliteReader, openSqliteWriter } from '../../../src/store/sqlite/sqlite.ts'
import { createSqliteWriteStore } from '../../../src/store/sqlite/sqlite-write-store.ts'
import { createWriteSide } from '../../../src/wiring/write-side.ts'
import { aPoll } from '../../support/builders.ts'
import { deliverOptions, recordOptions } from '../../support/policy.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const HOUR_MS = 3_600_000
const NOW = Date.UTC(2026, 2, 1, 12)

/** Parcels that were asked about while pushes were healthy. */
async function planned(parcels: number) {
  let health: PushHealth = 'healthy'
  const clock = { now: () => NOW, monotonic: () => performance.now() }
  const keeper = createCarrierModelKeeper(clock)
  const model = { ...keeper, current: () => ({ ...keeper.current(), pushHealth: health }) }
  const path = join(temporaryFolder(), 'relay.db')
  const log = { error: (fields: object) => void expect.fail(JSON.stringify(fields)) }
  const engine = await openSqliteWriter(path)
  const store = createSqliteWriteStore(engine)
  const checkpoint = await openModelCheckpoint({ store, clock, log })
  const writes = createWriteSide({ store, clock, log, checkpoint, model }, { record: recordOptions, deliver: deliverOptions })
  const reads = createReadStore(openSqliteReader(path))
  onTestFinished(async () => {
    await reads.close()
    await writes.close()
    await engine.close()
  })
  const asked = Array.from({ length: parcels }, (_, at) => `PA${String(at).padStart(6, '0')}`)
  const polls = asked.map((id, at) => aPoll({ asked: id, trackingIds: [String(5000 + at)], askedAtMs: NOW }))
  await writes.record(polls.map((observation) => ({ kind: 'poll', observation, watch: true })))
  return {
    become: (now: PushHealth) => {
      health = now
    },
    pass: () => writes.settleMissedPushes(NOW),
    waits: async () => {
      const states = await Promise.all(asked.map((id) => reads.inspectParcel(id)))
      return states.map((found) => ((found?.state.nextPollAtMs ?? Number.NaN) - NOW) / HOUR_MS)
    },
  }
}

test('6.1: when the pushes fall silent, checks that were planned while they came are brought forward to the full cadence', async () => {
  const { become, pass, waits } = await planned(600)
  await pass()
  expect(Math.min(...(await waits()))).toBeGreaterThan(3.9)
  become('silent')
  await pass()
  expect(Math.max(...(await waits()))).toBeLessThan(1.2)
})

test('what is planned is left as it is while pushes can be relied on', async () => {
  const { pass, waits } = await planned(3)
  const before = await waits()
  await pass()
  expect(await waits()).toEqual(before)
})
