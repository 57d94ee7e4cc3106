import { expect, test } from 'vitest'
import { runScenario, silenceFound } from '../../bench/polling/scenarios.ts'
import { byForm } from '../support/runner/long-form.ts'

/** Few parcels, so that the tests are quick. `npm run bench -- polling` simulates many more. */
const PARCELS = 150
const SILENT = byForm(60, PARCELS)

test('the relay finds lost entries sooner than a fixed poller that makes as many calls', async () => {
  const { relay, fixed, oracleMs } = await runScenario({ name: 'loss', scanRate: 'daily', loss: 0.05 }, PARCELS)
  expect(relay.staleness.lost.count).toBeGreaterThan(30)
  expect(relay.staleness.lost.meanMs).toBeLessThan(0.8 * fixed.staleness.lost.meanMs)
  expect(oracleMs).toBeLessThan(relay.staleness.lost.meanMs)
  expect(Math.abs(fixed.calls - relay.calls)).toBeLessThan(0.01 * relay.calls)
})

test('the relay notices that pushes have stopped, and trusts pushes again when they resume', async () => {
  const silence = { fromMs: Date.UTC(2026, 9, 7, 17), toMs: Date.UTC(2026, 9, 7, 23) }
  const { relay } = await runScenario({ name: 'silence', scanRate: 'daily', loss: 0, silence }, SILENT)
  const found = silenceFound(relay, silence)
  expect(found?.noticedAfterMs).toBeLessThan(silence.toMs - silence.fromMs)
  expect(found?.trustedAfterMs).toBeGreaterThan(0)
})
