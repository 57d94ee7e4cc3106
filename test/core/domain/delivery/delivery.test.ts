import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type AttemptOutcome,
  type BackoffPolicy,
  countAttempt,
  type Delivery,
  FAILING_MAX_MS,
  type FailureReason,
  type Settlement,
  settle,
} from '../../../../src/core/domain/delivery/delivery.ts'
import { type EndpointHealth, healthAfter, newHealth } from '../../../../src/core/domain/delivery/endpoint-health.ts'
import { HOUR_MS } from '../../../support/runner/constants.ts'

const policy: BackoffPolicy = {
  scheduleMs: [5_000, 300_000, 1_800_000, 2, 5, 10, 10].map((wait) => (wait < 100 ? wait * HOUR_MS : wait)),
  jitter: 0,
}
const queuedAtMs = Date.parse('2026-03-01T12:00:00Z')
const nowMs = queuedAtMs + 60_000
const usedUp = policy.scheduleMs.length + 1
const alive: EndpointHealth = { ...newHealth, lastSuccessAtMs: queuedAtMs + 1, failingSinceMs: queuedAtMs + 2 }
const worn: EndpointHealth = { ...newHealth, failingSinceMs: nowMs - 2 * FAILING_MAX_MS, failedForMs: 2 * FAILING_MAX_MS }
const healthThen = (health: EndpointHealth, outcome: AttemptOutcome, atMs: number) =>
  healthAfter(health, { parcelId: 1, outcome, atMs }, atMs)

const accepted: AttemptOutcome = { kind: 'accepted', status: 200 }
const rejected = (status: number, retryAfterMs: number | null = null): AttemptOutcome => ({ kind: 'rejected', status, retryAfterMs })
const failed = (reason: FailureReason): AttemptOutcome => ({ kind: 'failed', reason, detail: 'CODE' })

interface Given {
  readonly attempts?: number
  readonly firstFailedAtMs?: number
  readonly health?: EndpointHealth
  readonly nowMs?: number
}

function settled(outcome: AttemptOutcome, given: Given = {}): Settlement {
  const { attempts = 1, firstFailedAtMs = queuedAtMs, health = newHealth } = given
  return settle({ attempts, spared: 0, limited: 0, firstFailedAtMs }, outcome, given.nowMs ?? nowMs, policy, health, 0.5)
}

const anyFailure: fc.Arbitrary<AttemptOutcome> = fc.oneof(
  fc
    .constantFrom<FailureReason>('timeout', 'dns', 'connection_refused', 'reset', 'tls', 'bad_response', 'forbidden', 'network')
    .map(failed),
  fc
    .integer({ min: 300, max: 599 })
    .filter((status) => status !== 410)
    .map((status) => rejected(status)),
)

describe('settling a delivery', () => {
  test.each([200, 201, 202, 204, 299])('O1: a %i means delivered, at any attempt and for any health of the endpoint', (status) => {
    for (const attempts of [1, usedUp, 1000]) {
      for (const health of [newHealth, alive, worn]) {
        expect(settled({ kind: 'accepted', status }, { attempts, health })).toEqual({ state: 'delivered' })
      }
    }
  })

  test.each([300, 301, 302, 303, 307, 308, 400, 401, 404, 409, 422, 429, 500, 503])(
    'O2, O3: a delivery answered with %i is retried on the schedule',
    (status) => {
      expect(settled(rejected(status))).toEqual({ state: 'retrying', nextAttemptAtMs: nowMs + 5_000 })
      expect(settled(rejected(status), { attempts: 2 })).toEqual({ state: 'retrying', nextAttemptAtMs: nowMs + 300_000 })
    },
  )

  test('O4: a delivery that gets no answer is retried on the schedule, whatever the reason', () => {
    fc.assert(
      fc.property(anyFailure, fc.integer({ min: 1, max: usedUp - 1 }), (outcome, attempts) => {
        const nextAttemptAtMs = nowMs + (policy.scheduleMs[attempts - 1] ?? 0)
        expect(settled(outcome, { attempts, health: alive })).toEqual({ state: 'retrying', nextAttemptAtMs })
      }),
    )
  })

  test.each([
    [429, 60_000, 60_000],
    [503, 60_000, 60_000],
    [503, 1, 5_000],
    [429, 1e12, HOUR_MS],
  ])('O3: a delivery answered with %i and a Retry-After of %i ms waits %i ms', (status, retryAfterMs, waitMs) => {
    expect(settled(rejected(status, retryAfterMs))).toEqual({ state: 'retrying', nextAttemptAtMs: nowMs + waitMs })
  })

  test('a delivery is dead at the end of its schedule, with the reason of its last failure', () => {
    const dead = (outcome: AttemptOutcome) => settled(outcome, { attempts: usedUp, health: alive })
    expect(dead(rejected(422))).toEqual({ state: 'dead', reason: 'receiver_refused' })
    expect(dead(rejected(302))).toEqual({ state: 'dead', reason: 'receiver_refused' })
    expect(dead(failed('timeout'))).toEqual({ state: 'dead', reason: 'unreachable' })
    expect(dead(failed('dns'))).toEqual({ state: 'dead', reason: 'unreachable' })
    expect(dead(failed('forbidden'))).toEqual({ state: 'dead', reason: 'forbidden' })
  })

  test('O6: a delivery stays alive if its endpoint had no success since the delivery first failed', () => {
    const firstFailedAtMs = queuedAtMs + 30_000
    const lastSuccesses = fc.oneof(fc.constantFrom(null, queuedAtMs, queuedAtMs + 1, firstFailedAtMs), fc.nat({ max: firstFailedAtMs }))
    fc.assert(
      fc.property(anyFailure, fc.integer({ min: usedUp, max: 10_000 }), lastSuccesses, (outcome, attempts, lastSuccessAtMs) => {
        const health = { ...newHealth, lastSuccessAtMs, failingSinceMs: firstFailedAtMs }
        expect(settled(outcome, { attempts, firstFailedAtMs, health })).toEqual({
          state: 'retrying',
          nextAttemptAtMs: nowMs + 10 * HOUR_MS,
        })
      }),
    )
  })

  test.each([
    ['', newHealth],
    [', even if it accepted another delivery just after this one was queued', { ...newHealth, lastSuccessAtMs: queuedAtMs + 1 }],
  ])('O6: an endpoint that is down for three days loses nothing%s', (_when, healthAtQueuing) => {
    let health: EndpointHealth = healthAtQueuing
    let delivery: Delivery = { attempts: 0, spared: 0, limited: 0, firstFailedAtMs: null }
    let atMs = queuedAtMs + 2
    while (atMs < queuedAtMs + 72 * HOUR_MS) {
      delivery = countAttempt(delivery, failed('connection_refused'), atMs)
      const settlement = settle(delivery, failed('connection_refused'), atMs, policy, health, 0.5)
      health = healthThen(health, failed('connection_refused'), atMs)
      if (settlement.state !== 'retrying') throw new Error(`ended as ${settlement.state}`)
      atMs = settlement.nextAttemptAtMs
    }
    expect(delivery.attempts).toBeGreaterThan(usedUp)
    expect(settle(delivery, accepted, atMs, policy, health, 0.5)).toEqual({ state: 'delivered' })
  })

  test('an attempt counts unless it was interrupted, and the time of the first failure is kept', () => {
    const fresh: Delivery = { attempts: 0, spared: 0, limited: 0, firstFailedAtMs: null }
    const once = countAttempt(fresh, rejected(500), 1_000)
    expect(once).toEqual({ attempts: 1, spared: 0, limited: 0, firstFailedAtMs: 1_000 })
    expect(countAttempt(once, failed('dns'), 2_000)).toEqual({ attempts: 2, spared: 0, limited: 0, firstFailedAtMs: 1_000 })
    expect(countAttempt(once, failed('interrupted'), 2_000)).toEqual(once)
    expect(countAttempt(fresh, failed('interrupted'), 2_000)).toEqual(fresh)
    expect(countAttempt(fresh, accepted, 2_000)).toEqual({ attempts: 1, spared: 0, limited: 0, firstFailedAtMs: null })
  })

  test('O3: a 410 at any attempt disables the endpoint, and the delivery waits', () => {
    for (const attempts of [1, usedUp]) {
      expect(settled(rejected(410), { attempts, health: alive })).toEqual({ state: 'held', reason: 'gone' })
    }
  })

  test('O7: 120 h of failures disable the endpoint, and the delivery waits instead of dying', () => {
    const seen = (failedForMs: number): Given => ({ attempts: usedUp, health: { ...worn, failedForMs } })
    fc.assert(
      fc.property(anyFailure, (outcome) => {
        expect(settled(outcome, seen(120 * HOUR_MS))).toEqual({ state: 'held', reason: 'failing' })
        expect(settled(outcome, seen(120 * HOUR_MS - 1)).state).toBe('retrying')
      }),
    )
  })

  test('an endpoint that was enabled again is not disabled by its first failure', () => {
    expect(settled(failed('timeout'), { attempts: usedUp, health: newHealth }).state).toBe('retrying')
  })

  test('an attempt that an operator orders does not count in the schedule', () => {
    const once: Delivery = { attempts: 2, spared: 0, limited: 0, firstFailedAtMs: queuedAtMs }
    const spared = countAttempt(once, rejected(500), nowMs, true)
    expect(spared).toEqual({ attempts: 3, spared: 1, limited: 0, firstFailedAtMs: queuedAtMs })
    const planned = nowMs + 200_000
    const settledEarly = (outcome: AttemptOutcome) => settle(spared, outcome, nowMs, policy, alive, 0.5, planned)
    expect(settledEarly(rejected(500))).toEqual({ state: 'retrying', nextAttemptAtMs: planned })
    expect(settledEarly(rejected(503, 400_000))).toEqual({ state: 'retrying', nextAttemptAtMs: nowMs + 400_000 })
    const counted = countAttempt(spared, rejected(500), nowMs)
    expect(settle(counted, rejected(500), nowMs, policy, alive, 0.5)).toEqual({ state: 'retrying', nextAttemptAtMs: nowMs + 1_800_000 })
    const exhausted = { attempts: usedUp + 4, spared: 5, limited: 0, firstFailedAtMs: queuedAtMs }
    expect(settle(exhausted, rejected(500), nowMs, policy, alive, 0.5).state).toBe('retrying')
  })

  test('an attempt that is interrupted as the relay stops is no failure, and is due again at once', () => {
    expect(settled(failed('interrupted'), { attempts: usedUp, health: worn })).toEqual({ state: 'retrying', nextAttemptAtMs: nowMs })
    expect(healthThen(worn, failed('interrupted'), nowMs)).toBe(worn)
  })

  test('a delivery whose body is gone is dead at once, and does not count against its endpoint', () => {
    expect(settled(failed('body_gone'), { health: worn })).toEqual({ state: 'dead', reason: 'body_gone' })
    expect(healthThen(worn, failed('body_gone'), nowMs)).toBe(worn)
  })

  test('O15: after a clock jumps back, no delivery dies and no retry is due in the past', () => {
    const jumps = fc.integer({ min: 0, max: 10 * 365 * 24 }).map((hours) => nowMs - hours * HOUR_MS)
    fc.assert(
      fc.property(anyFailure, jumps, fc.integer({ min: 1, max: 20 }), (outcome, atMs, attempts) => {
        const settlement = settled(outcome, { attempts, nowMs: atMs, health: { ...newHealth, failingSinceMs: nowMs } })
        expect(settlement.state === 'retrying' && settlement.nextAttemptAtMs > atMs).toBe(true)
      }),
    )
  })
})
