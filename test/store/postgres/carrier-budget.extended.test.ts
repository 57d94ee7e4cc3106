import { sql } from 'kysely'
import { expect, test } from 'vitest'
import type { BudgetRequest, SharedLimits } from '../../../src/domain/polling/shared-budget.ts'
import { createSharedBudget, settleBy } from '../../../src/store/postgres/polling/carrier-budget.ts'
import { createPostgresWriter } from '../../../src/store/postgres/postgres.ts'
import { DAY_MS, NOON } from '../../support/runner/constants.ts'
import { seeded } from '../../support/runner/seeded.ts'
import { createBudgetRow } from '../../support/store/budget-row.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'

const byTestClock = settleBy(sql<number>`(select at_ms from test_clock)`)

/** Five calls a second, of which two may come at once. */
const LIMITS: SharedLimits = { intervalUs: 200_000, headStartUs: 200_000, callsPerDay: 1000, concurrency: 100, placeMs: 10_000 }

/** The shared budget by a clock that the test sets. */
async function openBudget(overrides: Partial<SharedLimits> = {}) {
  const { url } = await createDatabase()
  const pool = openTestPool(url)
  await pool.query('create table test_clock (at_ms bigint not null)')
  await pool.query('insert into test_clock values ($1)', [NOON])
  const budget = createSharedBudget(createPostgresWriter(pool, { named: true }), byTestClock)
  let names = 0
  return {
    setClock: (atMs: number) => pool.query('update test_clock set at_ms = $1', [atMs]),
    settle(request: Partial<BudgetRequest>, limits: SharedLimits = { ...LIMITS, ...overrides }) {
      const { apps = 0, schedule = 0 } = request
      const wanted = Array.from({ length: apps + schedule }, () => String(names++))
      const all = { replica: 'one', names: wanted, ended: [], pauseMs: 0, atMostMs: null, ...request, apps, schedule }
      return budget.settle(all, limits)
    },
  }
}

test('grants a burst, then one call an interval, and says when the next may leave', async () => {
  const { settle, setClock } = await openBudget()
  expect(await settle({ schedule: 5 })).toMatchObject({ granted: 2, hold: 'wait', retryMs: 200, nextMs: 200, callsToday: 2 })
  await setClock(NOON + 199)
  expect(await settle({ schedule: 3 })).toMatchObject({ granted: 0, hold: 'wait', retryMs: 1 })
  await setClock(NOON + 200)
  expect(await settle({ schedule: 3 })).toMatchObject({ granted: 1, hold: 'wait', retryMs: 200 })
  await setClock(NOON + 60_000)
  expect(await settle({ schedule: 1 })).toMatchObject({ granted: 1, hold: null })
})

test('holds no more places than the concurrency; one that is ended, or lapses, is free again', async () => {
  const { settle, setClock } = await openBudget({ concurrency: 2, intervalUs: 1000, headStartUs: 100_000 })
  expect(await settle({ schedule: 3, names: ['a', 'b', 'c'] })).toMatchObject({ granted: 2, hold: 'busy' })
  expect(await settle({ schedule: 1, names: ['d'], ended: ['a', 'unknown'] })).toMatchObject({ granted: 1, hold: null })
  expect(await settle({ schedule: 1 })).toMatchObject({ granted: 0, hold: 'busy' })
  await setClock(NOON + 10_000)
  expect(await settle({ schedule: 2 })).toMatchObject({ granted: 2, hold: null })
})

test('P5: a pause that one replica was asked for holds all, and a shorter one does not end it', async () => {
  const { settle, setClock } = await openBudget()
  await settle({ pauseMs: 5000 })
  expect(await settle({ replica: 'other', pauseMs: 1000, apps: 1 })).toMatchObject({
    granted: 0,
    hold: 'paused',
    retryMs: 5000,
    nextMs: 5000,
  })
  await setClock(NOON + 5000)
  expect(await settle({ replica: 'other', apps: 1 })).toMatchObject({ granted: 1, hold: null })
})

test('6.4: the schedules of all replicas stand back for an app that waits in one', async () => {
  const { settle, setClock } = await openBudget({ headStartUs: 0 })
  await settle({ schedule: 1 })
  expect(await settle({ replica: 'other', apps: 1 })).toMatchObject({ granted: 0, hold: 'wait', retryMs: 200 })
  await setClock(NOON + 200)
  expect(await settle({ schedule: 1 })).toMatchObject({ granted: 0, hold: 'apps' })
  expect(await settle({ replica: 'third', apps: 1, schedule: 1 })).toMatchObject({ granted: 1, hold: 'wait' })
  await setClock(NOON + 400)
  expect(await settle({ replica: 'other', apps: 1 })).toMatchObject({ granted: 1, hold: null })
  await setClock(NOON + 600)
  expect(await settle({ schedule: 1 })).toMatchObject({ granted: 1, hold: null })
  await settle({ replica: 'other', apps: 1 })
  await setClock(NOON + 1299)
  expect(await settle({ schedule: 1 })).toMatchObject({ hold: 'apps' })
  await setClock(NOON + 1300)
  expect(await settle({ schedule: 1 })).toMatchObject({ granted: 1 })
})

test('is spent after the calls of the day until the next UTC midnight', async () => {
  const { settle, setClock } = await openBudget({ callsPerDay: 3, headStartUs: 2_000_000 })
  expect(await settle({ schedule: 5 })).toMatchObject({ granted: 3, hold: 'spent', retryMs: DAY_MS / 2, callsToday: 3 })
  await setClock(NOON + DAY_MS / 2)
  expect(await settle({ schedule: 1 })).toMatchObject({ granted: 1, callsToday: 1 })
})

test('P13: a server’s clock put back neither stalls nor lets a burst leave', async () => {
  const { settle, setClock } = await openBudget()
  expect((await settle({ schedule: 9 })).granted).toBe(2)
  await setClock(NOON - 3_600_000)
  expect(await settle({ schedule: 9 })).toMatchObject({ granted: 0, hold: 'wait', retryMs: 200 })
  await setClock(NOON - 3_600_000 + 200)
  expect(await settle({ schedule: 9, pauseMs: 0 })).toMatchObject({ granted: 1 })
  await settle({ pauseMs: 1000 })
  await setClock(NOON - 7_200_000)
  expect(await settle({ schedule: 1 })).toMatchObject({ hold: 'paused', retryMs: 1000 })
})

test('P13: a server’s clock put forward ends no pause sooner', async () => {
  const { settle, setClock } = await openBudget()
  const { atMs } = await settle({ pauseMs: 60_000 })
  await setClock(NOON + 600_000)
  expect(await settle({ schedule: 1, atMostMs: atMs + 2000 })).toMatchObject({ hold: 'paused', retryMs: 58_000 })
  await setClock(NOON + 600_000 + 58_000)
  expect((await settle({ schedule: 1, atMostMs: atMs + 70_000 })).granted).toBe(1)
})

test('P13: a clock put forward to another day and back again makes no room for more calls', async () => {
  const { settle, setClock } = await openBudget({ callsPerDay: 100, intervalUs: 1, headStartUs: 1_000_000 })
  const takeMost = async (atMs: number, most = 1000) => {
    await setClock(atMs)
    return (await settle({ schedule: most })).granted
  }
  expect(await takeMost(NOON, 40)).toBe(40)
  expect(await takeMost(NOON + DAY_MS, 30)).toBe(30)
  expect(await takeMost(NOON)).toBe(30)
  expect(await takeMost(NOON + DAY_MS)).toBe(70)
  expect(await takeMost(NOON)).toBe(0)
  for (let year = 0; year < 20; year++) await takeMost(NOON + year * 365 * DAY_MS, 1)
  expect(await takeMost(NOON)).toBe(0)
  expect(await takeMost(NOON + 2 * DAY_MS)).toBe(100)
})

test('answers 1,000 random requests of three replicas as the rule step by step does', async () => {
  const { settle, setClock } = await openBudget()
  let nowMs = NOON + DAY_MS / 2 - 60_000
  const rule = createBudgetRow(() => nowMs)
  const random = seeded(4711)
  const pick = (least: number, most: number) => Math.floor(least + random() * (most - least + 1))
  let held: readonly string[] = []
  let atMs: number | null = null
  for (let at = 0; at < 1000; at++) {
    nowMs += random() < 0.02 ? pick(-30, 30) * 3_600_000 : pick(0, 300)
    const [apps, schedule] = random() < 0.2 ? [0, 0] : [random() < 0.3 ? pick(1, 3) : 0, pick(0, 4)]
    const ended = held.filter(() => random() < 0.3)
    const request: BudgetRequest = {
      replica: `replica ${pick(0, 2)}`,
      names: Array.from({ length: apps + schedule }, (_, nth) => `${at}-${nth}`),
      apps,
      schedule,
      ended,
      pauseMs: random() < 0.02 ? pick(1, 5000) : 0,
      atMostMs: atMs === null || random() < 0.2 ? null : atMs + pick(500, 3000),
    }
    const limits = { ...LIMITS, callsPerDay: 200, concurrency: 5, placeMs: 3000, intervalUs: 66_667, headStartUs: 133_334 }
    await setClock(nowMs)
    const answer = await settle(request, limits)
    expect(answer).toEqual(rule(request, limits))
    atMs = answer.atMs
    held = [...held.filter((name) => !ended.includes(name)), ...request.names.slice(0, answer.granted)]
  }
})
