import { expect, test } from 'vitest'
import { silentMs } from '../../../../src/core/domain/polling/cadence.ts'
import { emptyScanRate, type ScanSample } from '../../../../src/core/domain/polling/scan-rate.ts'
import { createCarrierModelKeeper } from '../../../../src/core/flow/polling/carrier-model.ts'
import { DAY_MS, HOUR_MS } from '../../../support/runner/constants.ts'

const START_MS = Date.UTC(2026, 2, 2, 8)
const wait: ScanSample = {
  kind: 'wait',
  status: 'Ingested',
  entryCount: 1,
  fromMs: START_MS - 2 * HOUR_MS,
  toMs: START_MS - HOUR_MS,
  scanned: true,
}

test('the first samples are learnt at once, many later ones after a minute, a few after 15', () => {
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

/** Opens a keeper of the model with its own clock. `putBack` puts the clock back by `jumpMs`, and `wait` moves it on by an hour. */
function overHour(jumpMs: number) {
  let nowMs = START_MS
  const keeper = createCarrierModelKeeper({ now: () => nowMs })
  const putBack = () => {
    nowMs -= jumpMs
    keeper.review(GRACE_MS)
  }
  const wait = () => {
    nowMs += HOUR_MS
  }
  return { keeper, putBack, wait, now: () => nowMs }
}
const GRACE_MS = 10 * 60_000

test.each([0, DAY_MS])('6.1: silent pushes are noticed even though the clock was put back by %i ms', (jumpMs) => {
  const { keeper, putBack, wait: pass, now } = overHour(jumpMs)
  for (let push = 0; push < 100; push++) keeper.pushed(now(), 1)
  keeper.polled(now())
  pass()
  keeper.pushed(now(), 1)
  keeper.review(GRACE_MS)
  expect(keeper.current().pushHealth).toBe('healthy')
  putBack()
  pass()
  for (let entry = 0; entry < 10; entry++) keeper.foundByPoll(now() - 2 * GRACE_MS)
  for (let entry = 0; entry < 10; entry++) keeper.missed({ eventAtMs: now() - 2 * GRACE_MS, nowMs: now() })
  keeper.review(GRACE_MS)
  expect(keeper.current().pushHealth).toBe('silent')
})

test.each([0, DAY_MS])('6.1: a lasting silence of the carrier counts even though the clock was put back by %i ms', (jumpMs) => {
  const { keeper, putBack, wait: pass, now } = overHour(jumpMs)
  keeper.unanswered(now())
  putBack()
  pass()
  const { silence } = keeper.learnt()
  expect(silentMs(silence, now() - DAY_MS, now())).toBe(HOUR_MS)
})

test('6.1: a silence noted while the clock was ahead is forgotten when the clock is put back', () => {
  const { keeper, putBack, wait: pass, now } = overHour(2 * DAY_MS)
  keeper.unanswered(now())
  pass()
  pass()
  keeper.answered(now())
  const { silence } = keeper.learnt()
  expect(silentMs(silence, START_MS, now())).toBe(2 * HOUR_MS)
  putBack()
  expect(silentMs(keeper.learnt().silence, START_MS, START_MS + DAY_MS)).toBe(0)
})

test('a scan rate that is dated ahead of the clock gets the present time when it learns again', () => {
  let nowMs = START_MS
  const from = { ...createCarrierModelKeeper({ now: () => nowMs }).learnt(), scanRate: { ...emptyScanRate, asOfMs: START_MS + DAY_MS } }
  const keeper = createCarrierModelKeeper({ now: () => nowMs }, from)
  keeper.learn(wait)
  nowMs += HOUR_MS
  keeper.settle()
  expect(keeper.learnt().scanRate.asOfMs).toBe(nowMs)
})
