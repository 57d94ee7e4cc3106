import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createOwnBudget, type EarlierCalls, type OwnBudgetOptions, type SlotResult } from '../../../src/core/carrier/budget/own-budget.ts'
import { DAY_MS } from '../../support/runner/constants.ts'

const noon = Date.parse('2026-03-01T12:00:00Z')

/** Makes a budget whose calls are saved as soon as `takeSlot` answers `unwritten`. */
function aBudget(options: Partial<OwnBudgetOptions> = {}) {
  const budget = createOwnBudget({ ratePerSecond: 5, callsPerDay: 1_000_000, concurrency: 1_000_000, ...options })
  let writes = 0
  return {
    ...budget,
    writes: () => writes,
    takeSlot(nowMs: number, wallMs: number): SlotResult {
      const take = budget.takeSlot(nowMs, wallMs)
      if (take.kind !== 'unwritten') return take
      writes += 1
      budget.writtenDown(budget.toWriteDown(wallMs, true))
      return budget.takeSlot(nowMs, wallMs)
    },
  }
}

const earlier = (fields: Partial<EarlierCalls> = {}): EarlierCalls => ({
  days: [],
  atMs: noon,
  pausedUntilMs: Number.NEGATIVE_INFINITY,
  endedMs: -10_000,
  ...fields,
})
const onDay = (wallMs: number, calls: number) => ({ day: Math.floor(wallMs / DAY_MS), calls })

/** Returns the largest number of these times in any second. Both ends of the second count. */
function mostInASecond(times: readonly number[]): number {
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at <= from + 1000).length))
}

describe('the budget of a single process', () => {
  test('allows at most 1.5 times the rate in any second, however the calls come', () => {
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

  test('allows at least 97 % of the rate while calls are always waiting', () => {
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

  test('returns the shortest wait after which a call may leave', () => {
    const budget = aBudget({ ratePerSecond: 4 })
    budget.takeSlot(0, noon)
    budget.takeSlot(0, noon)
    expect(budget.takeSlot(0, noon)).toEqual({ kind: 'wait', untilMs: 250 })
    expect(budget.takeSlot(249, noon).kind).toBe('wait')
    expect(budget.takeSlot(250, noon).kind).toBe('taken')
  })

  test('gives out at most as many slots as the concurrency, and reuses released slots', () => {
    const budget = aBudget({ ratePerSecond: 100, concurrency: 2 })
    expect([1, 2, 3].map(() => budget.takeSlot(0, noon).kind)).toEqual(['taken', 'taken', 'busy'])
    budget.release()
    expect(budget.takeSlot(0, noon).kind).toBe('taken')
    expect(budget.inFlight()).toBe(2)
  })

  test('allows no call during a pause, and a shorter pause does not end a longer one', () => {
    const budget = aBudget()
    budget.pauseUntil(5_000)
    budget.pauseUntil(1_000)
    expect(budget.takeSlot(4_999, noon)).toEqual({ kind: 'paused', untilMs: 5_000 })
    expect(budget.takeSlot(5_000, noon).kind).toBe('taken')
  })

  test('allows no call until UTC midnight if this run and an earlier one used up the day’s calls', () => {
    const late = Date.parse('2026-03-01T23:30:00Z')
    const midnight = Date.parse('2026-03-02T00:00:00Z')
    const budget = aBudget({ ratePerSecond: 100, callsPerDay: 5, earlier: earlier({ days: [onDay(noon, 3)] }) })
    expect([1, 2].map(() => budget.takeSlot(0, late).kind)).toEqual(['taken', 'taken'])
    expect(budget.takeSlot(1_000, late)).toEqual({ kind: 'spent', retryAfterMs: 1_800_000 })
    expect(budget.takeSlot(2_000, midnight).kind).toBe('taken')
    expect(budget.callsToday(midnight)).toBe(1)
  })

  test('calls of an earlier run on an earlier day do not count', () => {
    const budget = aBudget({ callsPerDay: 5, earlier: earlier({ days: [onDay(noon - DAY_MS, 5)], atMs: noon - DAY_MS }) })
    expect([budget.callsToday(noon), budget.takeSlot(0, noon).kind]).toEqual([0, 'taken'])
  })

  test('allows a call only after it was saved, and saves several calls at a time', () => {
    const budget = createOwnBudget({ ratePerSecond: 1000, callsPerDay: 50_000, concurrency: 100 })
    expect(budget.takeSlot(0, noon)).toEqual({ kind: 'unwritten' })
    budget.writtenDown(budget.toWriteDown(noon, true))
    expect(budget.toWriteDown(noon, true)).toEqual([onDay(noon, 50)])
    for (let call = 0; call < 50; call++) expect(budget.takeSlot(0, noon).kind).toBe('taken')
    expect(budget.takeSlot(0, noon)).toEqual({ kind: 'unwritten' })
    expect(budget.toWriteDown(noon, false)).toEqual([onDay(noon, 50)])
    const small = aBudget({ ratePerSecond: 1000, callsPerDay: 60 })
    for (let call = 0; call < 10; call++) small.takeSlot(0, noon)
    expect(small.writes()).toBe(10)
  })

  test('after midnight, the calls saved for the old day are saved again with the new day’s', () => {
    const budget = createOwnBudget({ ratePerSecond: 1000, callsPerDay: 50_000, concurrency: 100 })
    budget.writtenDown(budget.toWriteDown(noon, true))
    for (let call = 0; call < 10; call++) budget.takeSlot(0, noon)
    const tomorrow = noon + DAY_MS
    expect(budget.toWriteDown(noon, true)).toEqual([onDay(noon, 60)])
    expect(budget.toWriteDown(tomorrow, true)).toEqual([onDay(noon, 50), onDay(tomorrow, 50)])
    expect(budget.takeSlot(0, tomorrow)).toEqual({ kind: 'unwritten' })
  })

  test('P13: a clock put forward to another day and back again allows no additional calls', () => {
    const budget = aBudget({ ratePerSecond: 1000, callsPerDay: 100 })
    const takeMost = (wallMs: number, most = 1000) => {
      let taken = 0
      while (taken < most && budget.takeSlot(0, wallMs).kind === 'taken') taken += 1
      return taken
    }
    expect(takeMost(noon, 40)).toBe(40)
    expect(takeMost(noon + DAY_MS, 30)).toBe(30)
    expect(takeMost(noon)).toBe(30)
    expect(takeMost(noon + DAY_MS)).toBe(70)
    expect(takeMost(noon)).toBe(0)
    for (let year = 0; year < 20; year++) takeMost(noon + year * 365 * DAY_MS, 1)
    expect(takeMost(noon)).toBe(0)
    expect(takeMost(noon + 2 * DAY_MS)).toBe(100)
  })

  test('P13: calls dated ten years ahead count on the day the clock is corrected, and not later', () => {
    const ahead = noon + 3650 * DAY_MS
    const budget = aBudget({ ratePerSecond: 1000, callsPerDay: 100, earlier: earlier({ days: [onDay(ahead, 100)], atMs: ahead }) })
    expect(budget.takeSlot(0, noon).kind).toBe('spent')
    expect(budget.takeSlot(0, noon + DAY_MS).kind).toBe('taken')
    expect(budget.callsToday(noon + DAY_MS)).toBe(1)
  })

  test('allows no burst of calls right after a restart', () => {
    const budget = aBudget({ ratePerSecond: 8, earlier: earlier({ endedMs: 0 }) })
    const left: number[] = []
    for (let nowMs = 0; nowMs <= 1000; nowMs += 5) if (budget.takeSlot(nowMs, noon).kind === 'taken') left.push(nowMs)
    expect(left).toEqual([125, 250, 375, 500, 625, 750, 875, 1000])
  })

  test('a pause of an earlier run continues', () => {
    const budget = aBudget({ earlier: earlier({ pausedUntilMs: 5000 }) })
    expect(budget.takeSlot(4999, noon)).toEqual({ kind: 'paused', untilMs: 5000 })
    expect(budget.takeSlot(5000, noon).kind).toBe('taken')
  })

  test('P13: a wall clock that jumps causes neither a stall nor a burst', () => {
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
