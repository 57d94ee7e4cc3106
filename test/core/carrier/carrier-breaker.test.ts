import { expect, test } from 'vitest'
import { createCarrierBreaker } from '../../../src/core/carrier/call/carrier-breaker.ts'
import type { StatusOutcome } from '../../../src/core/carrier/call/status-call.ts'
import { HOUR_MS, NOON } from '../../support/runner/constants.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }

const REFUSED: StatusOutcome = { kind: 'unavailable', reason: 'rejected', detail: 'status 403', conclusive: true, ofQuestion: true }

test('all who ask since when the carrier answers nothing are told the same instant', async () => {
  let monotonicMs = 0
  let wallMs = NOON
  const clock = { now: () => wallMs, monotonic: () => monotonicMs }
  const breaker = createCarrierBreaker({ clock, log: silent, check: async () => REFUSED, random: () => 0 })
  const ask = async (count: number) => {
    for (let nth = 0; nth < count; nth++)
      await breaker.guard({ identifier: `AB${nth}`, language: 'en', priority: 'schedule' }, async () => REFUSED)
  }
  expect(breaker.state()).not.toHaveProperty('unanswered')
  await ask(2)
  const { unanswered } = breaker.state()
  expect(unanswered).toEqual({ count: 2, sinceMs: NOON })
  await ask(20)
  await breaker.lookAgain()
  expect(breaker.state().state).toBe('open')
  // The two clocks of a machine never run quite alike.
  for (const drift of [0.4, 0.7, 1.3]) {
    monotonicMs += 1000
    wallMs += 1000 + drift
    expect(breaker.state().sinceMs).toBe(NOON)
  }
  wallMs = NOON - HOUR_MS
  expect(breaker.state().sinceMs).toBe(wallMs)
})
