import { describe, expect, test } from 'vitest'
import {
  describeLimit,
  healthAt,
  type LimitSignal,
  newHealth,
  type Pace,
  paceAt,
  pausedUntil,
  probeSoon,
  slowDown,
  tryChanged,
  waitOf,
  wakeWaiting,
} from '../../../../src/core/domain/delivery/endpoint-health.ts'
import { NOON } from '../../../support/runner/constants.ts'

const MINUTE = 60_000
const signal: LimitSignal = { atMs: NOON, retryAfterMs: null, sentPerSecond: 40, ratePerSecond: null }

/** Returns the pace after refusals at these times. Each refused attempt began when it was refused. */
const refusedAt = (times: readonly number[], change: Partial<LimitSignal> = {}): Pace | null =>
  times.reduce<Pace | null>((pace, atMs) => slowDown(pace, { ...signal, ...change, atMs }, atMs), null)

describe('7.4: the pace of an endpoint that limits us', () => {
  test('is half of what was sent, or half of its rate if that is lower', () => {
    expect(refusedAt([NOON])).toMatchObject({ perSecond: 20, limitPerSecond: 40 })
    expect(refusedAt([NOON], { ratePerSecond: 10 })).toMatchObject({ perSecond: 5, limitPerSecond: 10 })
  })

  test('is halved once by eight refusals in flight, and at most once a second', () => {
    const first = refusedAt([NOON])
    // Each began before the pace was halved, however late it is answered.
    const inFlight = Array.from({ length: 8 }, (_, nth) => NOON + nth * 700)
    expect(inFlight.reduce((pace, nowMs) => slowDown(pace, { ...signal, atMs: NOON - 1 }, nowMs), first)).toMatchObject({ perSecond: 20 })
    expect(refusedAt([NOON, NOON + 1, NOON + 999])).toMatchObject({ perSecond: 20 })
    expect(refusedAt([NOON, NOON + 1000])).toMatchObject({ perSecond: 10 })
  })

  test('falls to one attempt in five seconds, not lower', () => {
    const times = Array.from({ length: 50 }, (_, nth) => NOON + nth * 1000)
    expect(refusedAt(times)).toMatchObject({ perSecond: 0.2 })
  })

  test('grows by the same amount each second after the wait, and is forgotten after five minutes', () => {
    const pace = refusedAt([NOON], { retryAfterMs: 10_000, sentPerSecond: 10 })
    const at = (afterMs: number) => paceAt(pace, NOON + 10_000 + afterMs)
    expect([at(-10_000), at(0)]).toEqual([5, 5])
    expect([at(15_000), at(30_000)]).toEqual([7.5, 10])
    expect([at(5 * MINUTE - 1) !== null, at(5 * MINUTE)]).toEqual([true, null])
    // A slow one grows by at least 0.1 a second each second.
    expect(paceAt(refusedAt([NOON], { sentPerSecond: 1 }), NOON + 1000 + 10_000)).toBeCloseTo(1.5)
  })

  test('is halved from where it has grown to', () => {
    const pace = refusedAt([NOON], { sentPerSecond: 10 })
    const laterMs = NOON + 1000 + 30_000
    expect(slowDown(pace, { ...signal, atMs: laterMs }, laterMs)).toMatchObject({ perSecond: 5, limitPerSecond: 10 })
  })

  test.each([
    [null, 1000],
    [7000, 7000],
    [1, 1000],
    [1e12, 60 * MINUTE],
  ])('waits as asked: Retry-After %s is %s ms', (retryAfterMs, waitMs) => {
    expect(waitOf(refusedAt([NOON], { retryAfterMs }), NOON)).toBe(NOON + waitMs)
  })

  test('is halved again by a refusal after the clock was put back', () => {
    expect(refusedAt([NOON, NOON - 60 * MINUTE])).toMatchObject({ perSecond: 10 })
  })
})

describe('7.4: the health of an endpoint that limits us', () => {
  const limited = { ...newHealth, failingSinceMs: NOON, pace: refusedAt([NOON], { retryAfterMs: 20 * MINUTE }) }

  test('is failing when nothing was accepted for five minutes, also during a long wait', () => {
    expect(pausedUntil(limited, NOON)).toBe(NOON + 5 * MINUTE)
    expect(healthAt(limited, NOON + 5 * MINUTE - 1)).toBe(limited)
    const failing = healthAt(limited, NOON + 5 * MINUTE)
    // The endpoint asked not to be sent anything before.
    expect(failing.probing).toEqual({ atMs: NOON + 20 * MINUTE, failed: 0 })
    expect(pausedUntil(failing, NOON + 5 * MINUTE)).toBe(NOON + 20 * MINUTE)
    expect(healthAt({ ...limited, failingSinceMs: null }, NOON + 6 * MINUTE).probing).toBeNull()
  })

  test.each([
    ['of everything', wakeWaiting],
    ['of one delivery', probeSoon],
  ])('a retry %s ends the wait and keeps the pace', (_, retry) => {
    const { pace } = retry(limited, NOON + 5)
    expect(waitOf(pace, NOON + 5)).toBeNull()
    expect(paceAt(pace, NOON + 5)).toBe(20)
  })

  test('another URL or key is tried at once, without the pace', () => {
    expect(tryChanged(limited, NOON + 5).pace).toBeNull()
  })
})

test.each([
  [5.4, '5/s'],
  [0.2, 'one in 5 s'],
])('a limit of %s is told as about %s', (perSecond, text) => {
  expect(describeLimit(perSecond)).toBe(`limits us to about ${text}`)
})
