import { describe, expect, onTestFinished, test } from 'vitest'
import type { PushHealth } from '../../../src/domain/polling/push-health.ts'
import { createCarrierModelKeeper } from '../../../src/flow/polling/carrier-model.ts'
import { openModelCheckpoint } from '../../../src/flow/polling/model-checkpoint.ts'
import type { Engine } from '../../../src/store/contract.ts'
import { createWriteSide } from '../../../src/wiring/write-side.ts'
import { aPoll } from '../../support/history/builders.ts'
import { deliverOptions, recordOptions } from '../../support/history/policy.ts'
import { HOUR_MS, NOON } from '../../support/runner/constants.ts'
import { engines, openBareStore } from '../../support/store/engines.ts'

/** Stores parcels that were polled while pushes were healthy. */
async function planned(engine: Engine, parcels: number) {
  let health: PushHealth = 'healthy'
  const clock = { now: () => NOON, monotonic: () => performance.now() }
  const keeper = createCarrierModelKeeper(clock)
  const model = { ...keeper, current: () => ({ ...keeper.current(), pushHealth: health }) }
  const log = { error: (fields: object) => void expect.fail(JSON.stringify(fields)) }
  const { store, reads } = await openBareStore(engine)
  const checkpoint = await openModelCheckpoint({ store, clock, log })
  const writes = createWriteSide({ store, clock, log, checkpoint, model }, { record: recordOptions, deliver: deliverOptions })
  onTestFinished(() => writes.close())
  const asked = Array.from({ length: parcels }, (_, at) => `PA${String(at).padStart(6, '0')}`)
  const polls = asked.map((id, at) => aPoll({ asked: id, trackingIds: [String(5000 + at)], askedAtMs: NOON }))
  await writes.record(polls.map((observation) => ({ kind: 'poll', observation, watch: true })))
  return {
    become: (now: PushHealth) => {
      health = now
    },
    pass: () => writes.settleMissedPushes(NOON),
    waits: async () => {
      const states = []
      for (const id of asked) states.push((await reads.inspectParcel(id))?.state)
      return states.map((state) => ((state?.nextPollAtMs ?? Number.NaN) - NOON) / HOUR_MS)
    },
  }
}

describe.each(engines)('the plan of polls on $name', (engine) => {
  test('6.1: when pushes fall silent, planned polls are brought forward to the full cadence', async () => {
    const { become, pass, waits } = await planned(engine, 600)
    await pass()
    expect(Math.min(...(await waits()))).toBeGreaterThan(3.9)
    become('silent')
    await pass()
    expect(Math.max(...(await waits()))).toBeLessThan(1.2)
  })

  test('planned polls stay as they are while pushes are reliable', async () => {
    const { pass, waits } = await planned(engine, 3)
    const before = await waits()
    await pass()
    expect(await waits()).toEqual(before)
  })
})
