import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BackoffPolicy, lastDelayMs, nextDelayMs, obeyRetryAfterMs } from '../../../../src/core/domain/delivery/delivery.ts'

const policy: BackoffPolicy = { scheduleMs: [5_000, 300_000, 1_800_000], jitter: 0.2 }
const middle = 0.5
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('the spacing of attempts', () => {
  test('a schedule of n waits allows n + 1 attempts', () => {
    expect([1, 2, 3, 4, 5].map((attempts) => nextDelayMs(attempts, policy, middle))).toEqual([5_000, 300_000, 1_800_000, null, null])
  })

  test('after the end of a schedule, its last wait is the pause between further attempts', () => {
    expect(lastDelayMs(policy, middle)).toBe(1_800_000)
  })

  test('a jitter of 0.2 changes a wait by up to a tenth in either direction', () => {
    expect(nextDelayMs(1, policy, 0)).toBe(4_500)
    expect(nextDelayMs(1, policy, 0.999_999)).toBe(5_500)
    fc.assert(
      fc.property(chance, fc.double({ min: 0, max: 1, noNaN: true }), (random, jitter) => {
        const waitMs = nextDelayMs(1, { scheduleMs: [10_000], jitter }, random)
        expect(waitMs).toBeGreaterThanOrEqual(Math.floor(10_000 * (1 - jitter / 2)))
        expect(waitMs).toBeLessThanOrEqual(Math.ceil(10_000 * (1 + jitter / 2)))
        expect(Number.isInteger(waitMs)).toBe(true)
      }),
    )
  })

  test('without jitter a wait does not depend on chance', () => {
    fc.assert(fc.property(chance, (random) => nextDelayMs(2, { ...policy, jitter: 0 }, random) === 300_000))
  })

  test('O3: Retry-After delays an attempt by a second to an hour, but never makes it earlier', () => {
    expect(obeyRetryAfterMs(5_000, null)).toBe(5_000)
    expect(obeyRetryAfterMs(5_000, 60_000)).toBe(60_000)
    expect(obeyRetryAfterMs(5_000, 1e15)).toBe(3_600_000)
    expect(obeyRetryAfterMs(0, -5)).toBe(1_000)
    expect(obeyRetryAfterMs(300_000, 1_000)).toBe(300_000)
  })
})
