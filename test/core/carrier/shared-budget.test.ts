import { expect, test } from 'vitest'
import { createSharedBudget } from '../../../src/core/carrier/budget/carrier-budget.ts'
import type { BudgetAnswer, BudgetRequest } from '../../../src/core/domain/polling/call-budget.ts'
import { createTimeline } from './timeline.ts'

const GRANTED: BudgetAnswer = { granted: 1, hold: null, retryMs: 0, nextMs: 0, atMs: 1000, callsToday: 1, dayLeftMs: 60_000 }

/** Opens one replica's part of the shared budget. The test decides what the database answers. */
function open() {
  const { clock, startTimer, pass } = createTimeline()
  const requests: BudgetRequest[] = []
  let answers = (_request: BudgetRequest): Promise<BudgetAnswer> => Promise.resolve(GRANTED)
  const store = {
    settle(request: BudgetRequest) {
      requests.push(request)
      return answers(request)
    },
  }
  const limits = { ratePerSecond: 5, callsPerDay: 100, concurrency: 3, timeoutMs: 10_000 }
  const calls = createSharedBudget({ ...limits, store, replica: 'r', clock, startTimer })
  const answer = (next: Partial<BudgetAnswer>, afterMs = 0) => {
    answers = () => new Promise((resolve) => startTimer(afterMs, () => resolve({ ...GRANTED, ...next })))
  }
  const fail = () => {
    answers = () => Promise.reject(new Error('the server is away'))
  }
  const take = (priority: 'app' | 'schedule' = 'schedule') => calls.takeSlot(clock.monotonic(), 0, priority)
  const reserve = async (apps: number, schedule: number, waitMs = 0) => {
    const done = calls.reserve({ apps, schedule })
    await pass(waitMs)
    return await done
  }
  return { ...calls, requests, answer, fail, take, reserve, pass }
}

test('the end of a call is reported to the database, even if no other call needs a slot', async () => {
  const { take, reserve, release, requests, pass, inFlight } = open()
  expect(take()).toEqual({ kind: 'unwritten' })
  await reserve(0, 1)
  expect([take().kind, take().kind, inFlight()]).toEqual(['taken', 'unwritten', 1])
  release()
  await reserve(1, 1)
  expect(requests.map(({ names, ended }) => [names.length, ended])).toEqual([
    [1, []],
    [2, ['r-0']],
  ])
  take()
  release()
  await pass(20)
  expect(requests.at(-1)).toMatchObject({ names: [], ended: ['r-1'] })
})

test('an unused slot is given back, and three late answers in a row count as a failure', async () => {
  const { take, reserve, requests, answer, pass } = open()
  await reserve(0, 1)
  await pass(251)
  expect(take()).toEqual({ kind: 'unwritten' })
  await pass(20)
  expect(requests.at(-1)?.ended).toEqual(['r-0'])
  answer({}, 300)
  expect([await reserve(0, 1, 300), await reserve(0, 1, 300), await reserve(0, 1, 300)]).toEqual([true, true, false])
  answer({}, 10)
  expect([await reserve(0, 1, 10), take().kind]).toEqual([true, 'taken'])
})

test('a replica told to wait asks again when the time is over, or when an app begins to wait', async () => {
  const { take, reserve, answer, pass } = open()
  answer({ granted: 0, hold: 'wait', retryMs: 200 })
  await reserve(0, 1)
  expect([take('schedule'), take('app')]).toEqual([{ kind: 'wait', untilMs: 200 }, { kind: 'unwritten' }])
  await reserve(1, 1)
  expect(take('app')).toEqual({ kind: 'wait', untilMs: 200 })
  await pass(200)
  expect(take('app')).toEqual({ kind: 'unwritten' })
  answer({ granted: 0, hold: 'spent', retryMs: 60_000 })
  await reserve(0, 1)
  expect(take('app')).toEqual({ kind: 'spent', retryAfterMs: 60_000 })
})

test('if all slots are in use, the replica asks again when one of its calls ends', async () => {
  const { take, reserve, release, answer } = open()
  answer({ granted: 1, hold: 'busy', retryMs: 150 })
  await reserve(0, 2)
  expect([take().kind, take().kind]).toEqual(['taken', 'wait'])
  release()
  expect(take()).toEqual({ kind: 'unwritten' })
})

test('P5: a pause stops this replica at once, and is sent again until it is saved', async () => {
  const { take, reserve, requests, pauseUntil, settle, fail, answer, pass } = open()
  await reserve(0, 1)
  pauseUntil(5000)
  expect(take()).toEqual({ kind: 'paused', untilMs: 5000 })
  fail()
  await expect(settle()).rejects.toThrow('away')
  await pass(1000)
  answer({})
  await Promise.all([settle(), pass(0)])
  await Promise.all([settle(), pass(0)])
  expect(requests.filter(({ pauseMs }) => pauseMs > 0).at(-1)?.pauseMs).toBe(4000)
  expect(requests.at(-1)?.pauseMs).toBe(0)
})

test('slots are given back if the answer that granted them was lost', async () => {
  const { take, reserve, requests, fail, answer } = open()
  fail()
  await expect(reserve(0, 2)).rejects.toThrow('away')
  expect(take()).toEqual({ kind: 'unwritten' })
  answer({})
  await reserve(0, 1)
  expect(requests.at(-1)).toMatchObject({ names: ['r-2'], ended: ['r-0', 'r-1'] })
})
