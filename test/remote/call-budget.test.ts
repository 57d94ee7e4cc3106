import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CallBudgetOptions, createCallBudget } from '../../src/remote/call-budget.ts'

const noon = Date.parse('2026-03-01T12:00:00Z')
const aBudget = (options: Partial<CallBudgetOptions> = {}) =>
  createCallBudget({ ratePerSecond: 5, callsPerDay: 1_000_000, concurrency: 1_000_000, ...options })

/** The most of these times that any second, wherever it starts and its end included, holds. */
function mostInASecond(times: readonly number[]): number {
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at <= from + 1000).length))
}

describe('the call budget', () => {
  test('lets at most 1.5 times the rate leave in any sliding second, however the calls come', () => {
    const rates = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.double({ min: 0.2, max: 20, noNaN: true }))
    fc.assert(
      fc.property(rates, fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 120 }), (ratePerSecond, gaps) => {
        const budget = aBudget({ ratePerSecond })
        const left: number[] = []
        let nowMs = 0
        for (const gap of gaps) {
          nowMs += gap
          while (budget.takeSlot(nowMs, noon).kind === 'taken') left.push(nowMs)
        }
        expect(mostInASecond(left)).toBeLessThanOrEqual(Math.max(1, 1.5 * ratePerSecond))
      }),
    )
  })

  test('lets the whole rate leave when there is always somebody who waits', () => {
    for (const ratePerSecond of [1, 2, 3, 5, 20]) {
      const budget = aBudget({ ratePerSecond })
      let left = 0
      for (let nowMs = 0; nowMs <= 60_000; ) {
        const take = budget.takeSlot(nowMs, noon)
        if (take.kind === 'taken') left += 1
        else if (take.kind === 'wait') nowMs = take.untilMs
        else throw new Error(take.kind)
      }
      expect(left).toBeGreaterThanOrEqual(60 * ratePerSecond * 0.97)
    }
  })

  test('a wait it names is the soonest that lets a call leave', () => {
    const budget = aBudget({ ratePerSecond: 4 })
    budget.takeSlot(0, noon)
    budget.takeSlot(0, noon)
    expect(budget.takeSlot(0, noon)).toEqual({ kind: 'wait', untilMs: 250 })
    expect(budget.takeSlot(249, noon).kind).toBe('wait')
    expect(budget.takeSlot(250, noon).kind).toBe('taken')
  })

  test('holds no more slots than the concurrency, and gives a released one out again', () => {
    const budget = aBudget({ ratePerSecond: 100, concurrency: 2 })
    expect([1, 2, 3].map(() => budget.takeSlot(0, noon).kind)).toEqual(['taken', 'taken', 'busy'])
    budget.release()
    expect(budget.takeSlot(0, noon).kind).toBe('taken')
    expect(budget.inFlight()).toBe(2)
  })

  test('lets nothing leave during a pause, and a shorter pause does not end a longer one', () => {
    const budget = aBudget()
    budget.pauseUntil(5_000)
    budget.pauseUntil(1_000)
    expect(budget.takeSlot(4_999, noon)).toEqual({ kind: 'paused', untilMs: 5_000 })
    expect(budget.takeSlot(5_000, noon).kind).toBe('taken')
  })

  test('is spent after the calls of the day, until the next UTC midnight', () => {
    const late = Date.parse('2026-03-01T23:30:00Z')
    const budget = aBudget({ ratePerSecond: 100, callsPerDay: 5, initialCallsToday: 3 })
    expect([1, 2].map(() => budget.takeSlot(0, late).kind)).toEqual(['taken', 'taken'])
    expect(budget.takeSlot(1_000, late)).toEqual({ kind: 'spent', retryAfterMs: 1_800_000 })
    expect(budget.takeSlot(1_000, noon)).toEqual({ kind: 'spent', retryAfterMs: 3_600_000 })
    expect(budget.takeSlot(2_000, Date.parse('2026-03-02T00:00:00Z')).kind).toBe('taken')
    expect(budget.callsToday(Date.parse('2026-03-02T00:00:00Z'))).toBe(1)
  })

  test('P13: a wall clock that jumps neither stalls nor bursts', () => {
    const budget = aBudget({ ratePerSecond: 4 })
    const hour = 3_600_000
    const walls = [noon, noon + 24 * hour, noon - hour, noon]
    const left: number[] = []
    for (let nowMs = 0; nowMs < 8_000; nowMs += 50) {
      if (budget.takeSlot(nowMs, walls[Math.floor(nowMs / 2_000)] ?? noon).kind === 'taken') left.push(nowMs)
    }
    expect(mostInASecond(left)).toBeLessThanOrEqual(6)
    expect(left.length).toBeGreaterThanOrEqual(32)
  })
})
