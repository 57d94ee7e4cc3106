import { expect, test } from 'vitest'
import type { ScanSample } from '../../../src/domain/polling/scan-rate.ts'
import { createCarrierModelKeeper } from '../../../src/flow/polling/carrier-model.ts'

const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 2, 2, 8)
const wait: ScanSample = {
  kind: 'wait',
  status: 'Ingested',
  entryCount: 1,
  fromMs: START_MS - 2 * HOUR_MS,
  toMs: START_MS - HOUR_MS,
  scanned: true,
}

test('learns many lessons soon, but never so often that learning is all it does', () => {
  let nowMs = START_MS
  const keeper = createCarrierModelKeeper({ now: () => nowMs })
  const learnMany = () => {
    for (let count = 0; count < 5000; count++) keeper.learn(wait)
    return keeper.current().scanRate
  }
  const first = learnMany()
  expect(first.kinds.Ingested).toBeDefined()
  nowMs += 59_999
  expect(learnMany()).toBe(first)
  nowMs += 1
  const second = keeper.current().scanRate
  expect(second).not.toBe(first)
  keeper.learn(wait)
  nowMs += 14 * 60_000
  expect(keeper.current().scanRate).toBe(second)
  nowMs += 60_000
  expect(keeper.current().scanRate).not.toBe(second)
})
