import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { aPoll } from '../../../support/history/builders.ts'
import { HOUR_MS, NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openWithPushHealth } from '../../../support/store/push-health-store.ts'

/** Stores parcels that were polled while pushes were healthy. */
async function planned(engine: Engine, parcels: number) {
  const { writes, become, stateOf } = await openWithPushHealth(engine)
  const asked = Array.from({ length: parcels }, (_, at) => `PA${String(at).padStart(6, '0')}`)
  const polls = asked.map((id, at) => aPoll({ asked: id, trackingIds: [String(5000 + at)], askedAtMs: NOON }))
  await writes.record(polls.map((observation) => ({ kind: 'poll', observation, watch: true })))
  return {
    become,
    pass: () => writes.settleMissedPushes(NOON),
    waits: async () => {
      const states = []
      for (const id of asked) states.push(await stateOf(id))
      return states.map(({ nextPollAtMs }) => ((nextPollAtMs ?? Number.NaN) - NOON) / HOUR_MS)
    },
  }
}

describe.each(engines)('the schedule of polls on $name', (engine) => {
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
