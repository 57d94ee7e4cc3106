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

test('an outage that the store knows goes on from its beginning until an answer, and is taken up once', async () => {
  const clock = { now: () => NOON, monotonic: () => 5000 }
  const breaker = createCarrierBreaker({ clock, log: silent, check: async () => REFUSED, random: () => 0 })
  const ask = (ofNobody: boolean, outcome: StatusOutcome) =>
    breaker.guard({ identifier: 'AB1', language: 'en', priority: 'schedule', ofNobody }, async () => outcome)
  const outage = { sinceMs: NOON - HOUR_MS, failure: { reason: 'rejected', status: 403, atMs: NOON - HOUR_MS } } as const
  expect(breaker.resume(null)).toBe(false)
  expect(breaker.resume(outage)).toBe(true)
  expect(breaker.state()).toEqual({ state: 'open', failures: 0, restMs: 0, sinceMs: NOON - HOUR_MS })
  // A carrier that refused the questions about parcels may know nothing of other numbers.
  await ask(true, { kind: 'not_found' })
  expect(breaker.state()).toMatchObject({ state: 'open', sinceMs: NOON - HOUR_MS })
  await ask(false, { kind: 'not_found' })
  expect(breaker.state().state).toBe('closed')
  // The store learns of the answer some seconds later.
  expect(breaker.resume(outage)).toBe(false)
  expect(breaker.state().state).toBe('closed')
})

test('a pause that another replica has found ends when the store knows of no outage any more', () => {
  const clock = { now: () => NOON, monotonic: () => 0 }
  const breaker = createCarrierBreaker({ clock, log: silent, check: async () => REFUSED })
  breaker.resume({ sinceMs: NOON, failure: null })
  expect(breaker.state().state).toBe('open')
  expect(breaker.resume(null)).toBe(true)
  expect(breaker.state()).toEqual({ state: 'closed', failures: 0, restMs: 0 })
})
