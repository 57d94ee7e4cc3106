import { expect, test } from 'vitest'
import {
  type BudgetLimits,
  type BudgetRequest,
  describeSpent,
  settleBudget,
  spentUntilMs,
  UNUSED_BUDGET,
} from '../../../../src/core/domain/polling/call-budget.ts'
import { DAY_MS, NOON } from '../../../support/runner/constants.ts'
import { casesOf } from '../../../support/runner/long-form.ts'
import { createStepByStepBudget, randomRequests } from './step-by-step-budget.ts'

/** Five calls a second, of which two may be made at once. */
const LIMITS: BudgetLimits = { intervalUs: 200_000, headStartUs: 200_000, callsPerDay: 1000, concurrency: 100, slotMs: 10_000 }

/** Opens a budget with a clock that the test sets. */
function openBudget(overrides: Partial<BudgetLimits> = {}) {
  let row = UNUSED_BUDGET
  let nowMs = NOON
  let names = 0
  return {
    setClock(atMs: number) {
      nowMs = atMs
    },
    settle(request: Partial<BudgetRequest>) {
      const { apps = 0, schedule = 0 } = request
      const wanted = Array.from({ length: apps + schedule }, () => String(names++))
      const all = { caller: 'one', names: wanted, ended: [], pauseMs: 0, atMostMs: null, ...request, apps, schedule }
      const { row: next, answer } = settleBudget(row, { nowMs, wallMs: nowMs }, all, { ...LIMITS, ...overrides })
      row = next
      return answer
    },
  }
}

test('a budget that is used up says that calls are possible again at the next UTC midnight', () => {
  expect(spentUntilMs({ callsToday: 999, callsPerDay: 1000 }, NOON)).toBeNull()
  for (const callsToday of [1000, 1001]) expect(spentUntilMs({ callsToday, callsPerDay: 1000 }, NOON)).toBe(NOON + DAY_MS / 2)
  expect(describeSpent(NOON + DAY_MS / 2)).toMatch(/are used up; the relay can ask again from 2026-\d\d-\d\dT00:00:00\.000Z\.$/)
})

test('a burst is granted, then one call per interval; a refusal says when to ask again', () => {
  const { settle, setClock } = openBudget()
  expect(settle({ schedule: 5 })).toMatchObject({ granted: 2, hold: 'wait', retryMs: 200, nextMs: 200, callsToday: 2 })
  setClock(NOON + 199)
  expect(settle({ schedule: 3 })).toMatchObject({ granted: 0, hold: 'wait', retryMs: 1 })
  setClock(NOON + 200)
  expect(settle({ schedule: 3 })).toMatchObject({ granted: 1, hold: 'wait', retryMs: 200 })
  setClock(NOON + 60_000)
  expect(settle({ schedule: 1 })).toMatchObject({ granted: 1, hold: null })
})

test('at most `concurrency` slots are in use, and a slot that ends or expires is free again', () => {
  const { settle, setClock } = openBudget({ concurrency: 2, intervalUs: 1000, headStartUs: 100_000 })
  expect(settle({ schedule: 3, names: ['a', 'b', 'c'] })).toMatchObject({ granted: 2, hold: 'busy' })
  expect(settle({ schedule: 1, names: ['d'], ended: ['a', 'unknown'] })).toMatchObject({ granted: 1, hold: null })
  expect(settle({ schedule: 1 })).toMatchObject({ granted: 0, hold: 'busy' })
  setClock(NOON + 10_000)
  expect(settle({ schedule: 2 })).toMatchObject({ granted: 2, hold: null })
})

test('P5: a pause requested of one replica applies to all, and a shorter one does not end it', () => {
  const { settle, setClock } = openBudget()
  settle({ pauseMs: 5000 })
  expect(settle({ caller: 'other', pauseMs: 1000, apps: 1 })).toMatchObject({
    granted: 0,
    hold: 'paused',
    retryMs: 5000,
    nextMs: 5000,
  })
  setClock(NOON + 5000)
  expect(settle({ caller: 'other', apps: 1 })).toMatchObject({ granted: 1, hold: null })
})

test('6.4: scheduled calls of all replicas wait while an app waits at one of them', () => {
  const { settle, setClock } = openBudget({ headStartUs: 0 })
  settle({ schedule: 1 })
  expect(settle({ caller: 'other', apps: 1 })).toMatchObject({ granted: 0, hold: 'wait', retryMs: 200 })
  setClock(NOON + 200)
  expect(settle({ schedule: 1 })).toMatchObject({ granted: 0, hold: 'apps' })
  expect(settle({ caller: 'third', apps: 1, schedule: 1 })).toMatchObject({ granted: 1, hold: 'wait' })
  setClock(NOON + 400)
  expect(settle({ caller: 'other', apps: 1 })).toMatchObject({ granted: 1, hold: null })
  setClock(NOON + 600)
  expect(settle({ schedule: 1 })).toMatchObject({ granted: 1, hold: null })
  settle({ caller: 'other', apps: 1 })
  setClock(NOON + 1299)
  expect(settle({ schedule: 1 })).toMatchObject({ hold: 'apps' })
  setClock(NOON + 1300)
  expect(settle({ schedule: 1 })).toMatchObject({ granted: 1 })
})

test('when the calls of the day are used up, none is granted until the next UTC midnight', () => {
  const { settle, setClock } = openBudget({ callsPerDay: 3, headStartUs: 2_000_000 })
  expect(settle({ schedule: 5 })).toMatchObject({ granted: 3, hold: 'spent', retryMs: DAY_MS / 2, callsToday: 3 })
  setClock(NOON + DAY_MS / 2)
  expect(settle({ schedule: 1 })).toMatchObject({ granted: 1, callsToday: 1 })
})

test('P13: a server’s clock put back neither stalls calls nor allows a burst', () => {
  const { settle, setClock } = openBudget()
  expect(settle({ schedule: 9 }).granted).toBe(2)
  setClock(NOON - 3_600_000)
  expect(settle({ schedule: 9 })).toMatchObject({ granted: 0, hold: 'wait', retryMs: 200 })
  setClock(NOON - 3_600_000 + 200)
  expect(settle({ schedule: 9, pauseMs: 0 })).toMatchObject({ granted: 1 })
  settle({ pauseMs: 1000 })
  setClock(NOON - 7_200_000)
  expect(settle({ schedule: 1 })).toMatchObject({ hold: 'paused', retryMs: 1000 })
})

test('P13: a server’s clock put forward does not end a pause earlier', () => {
  const { settle, setClock } = openBudget()
  const { atMs } = settle({ pauseMs: 60_000 })
  setClock(NOON + 600_000)
  expect(settle({ schedule: 1, atMostMs: atMs + 2000 })).toMatchObject({ hold: 'paused', retryMs: 58_000 })
  setClock(NOON + 600_000 + 58_000)
  expect(settle({ schedule: 1, atMostMs: atMs + 70_000 }).granted).toBe(1)
})

test('P13: a clock put forward to another day and back again allows no additional calls', () => {
  const { settle, setClock } = openBudget({ callsPerDay: 100, intervalUs: 1, headStartUs: 1_000_000 })
  const takeMost = (atMs: number, most = 1000) => {
    setClock(atMs)
    return settle({ schedule: most }).granted
  }
  expect(takeMost(NOON, 40)).toBe(40)
  expect(takeMost(NOON + DAY_MS, 30)).toBe(30)
  expect(takeMost(NOON)).toBe(30)
  expect(takeMost(NOON + DAY_MS)).toBe(70)
  expect(takeMost(NOON)).toBe(0)
  for (let year = 0; year < 20; year++) takeMost(NOON + year * 365 * DAY_MS, 1)
  expect(takeMost(NOON)).toBe(0)
  expect(takeMost(NOON + 2 * DAY_MS)).toBe(100)
})

test('random requests get the same answers as from a budget that decides call by call', () => {
  for (let seed = 1; seed <= casesOf(40, 8); seed++) {
    let row = UNUSED_BUDGET
    for (const { nowMs, request, limits, answered } of randomRequests(seed, createStepByStepBudget())) {
      const settled = settleBudget(row, { nowMs, wallMs: nowMs }, request, limits)
      expect(settled.answer).toEqual(answered)
      row = settled.row
    }
  }
})
