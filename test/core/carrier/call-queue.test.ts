import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createOwnBudget, type OwnBudgetOptions } from '../../../src/core/carrier/budget/own-budget.ts'
import { createCallQueue, type Permit, type Refusal } from '../../../src/core/carrier/call/call-queue.ts'
import type { CallPriority } from '../../../src/core/domain/polling/carrier-answer.ts'
import { createTimeline } from './timeline.ts'

function aQueue(options: Partial<OwnBudgetOptions> & { readonly waitingMax?: number } = {}) {
  const timeline = createTimeline()
  const { clock, startTimer } = timeline
  const budget = createOwnBudget({ ratePerSecond: 4, callsPerDay: 1_000_000, concurrency: 100, ...options })
  const store = { isWell: true, writes: 0 }
  const queue = createCallQueue({
    budget,
    clock,
    startTimer,
    pausePatienceMs: 10_000,
    waitingMax: options.waitingMax ?? 1_000,
    writeDown: async () => {
      store.writes += 1
      if (store.isWell) budget.writtenDown(budget.toWriteDown(clock.now(), true))
      return store.isWell
    },
  })
  const order: string[] = []
  const ask = (name: string, priority: CallPriority, giveUpAtMs: number | null = null, signal = new AbortController().signal) =>
    queue.take({ priority, giveUpAtMs, signal }).then((outcome) => {
      order.push(outcome.kind === 'granted' ? name : `${name}:${outcome.reason}`)
      return outcome
    })
  return { ...timeline, budget, queue, order, ask, store }
}

const released = (outcome: Permit | Refusal) => (outcome.kind === 'granted' ? outcome.release() : undefined)

describe('the queue for calls', () => {
  test('admits apps before the schedule, and each kind in order of arrival', async () => {
    const { ask, order, pass } = aQueue({ concurrency: 1, ratePerSecond: 100 })
    const first = await ask('first', 'schedule')
    for (const name of ['s1', 'a1', 's2', 'a2']) void ask(name, name.startsWith('a') ? 'app' : 'schedule').then(released)
    await pass(1_000)
    expect(order).toEqual(['first'])
    released(first)
    await pass(1_000)
    expect(order).toEqual(['first', 'a1', 'a2', 's1', 's2'])
  })

  test('9.3: watchdogs go before the schedule, in turn with it, however many of them wait', async () => {
    const { ask, order, pass } = aQueue({ concurrency: 1, ratePerSecond: 100 })
    const first = await ask('first', 'app')
    for (const name of ['s1', 's2', 's3', 'w1', 'w2', 'w3', 'w4', 'a1'] as const) {
      const priority = name.startsWith('a') ? 'app' : name.startsWith('w') ? 'watchdog' : 'schedule'
      void ask(name, priority).then(released)
    }
    released(first)
    for (let second = 0; second < 9; second++) await pass(1_000)
    expect(order).toEqual(['first', 'a1', 'w1', 's1', 'w2', 's2', 'w3', 's3', 'w4'])
  })

  test('keeps to the rate and the concurrency, admits apps first, and forgets no caller', async () => {
    const calls = fc.array(
      fc.record({ app: fc.boolean(), gapMs: fc.integer({ min: 0, max: 300 }), lastsMs: fc.integer({ min: 0, max: 2_000 }) }),
      { minLength: 1, maxLength: 40 },
    )
    await fc.assert(
      fc.asyncProperty(calls, fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 4 }), async (plan, ratePerSecond, concurrency) => {
        const { clock, startTimer, pass, queue, budget } = aQueue({ ratePerSecond, concurrency })
        const left: number[] = []
        const waitingApps = new Set<number>()
        let inFlight = 0
        for (const [index, { app, gapMs, lastsMs }] of plan.entries()) {
          await pass(gapMs)
          if (app) waitingApps.add(index)
          const signal = new AbortController().signal
          void queue.take({ priority: app ? 'app' : 'schedule', giveUpAtMs: null, signal }).then((outcome) => {
            if (outcome.kind === 'refused') throw new Error('refused')
            waitingApps.delete(index)
            if (!app) expect(waitingApps.size).toBe(0)
            expect(++inFlight).toBeLessThanOrEqual(concurrency)
            left.push(clock.monotonic())
            startTimer(lastsMs, () => {
              inFlight -= 1
              outcome.release()
            })
          })
        }
        await pass(plan.length * 4_000)
        expect(left).toHaveLength(plan.length)
        expect(budget.inFlight()).toBe(0)
        for (const from of left) {
          const within = left.filter((at) => at >= from && at <= from + 1000).length
          expect(within).toBeLessThanOrEqual(Math.max(1, 1.5 * ratePerSecond))
        }
      }),
      { numRuns: 60 },
    )
  })

  test('refuses an app that would wait beyond its deadline, and lets the schedule wait', async () => {
    const { ask, order, pass } = aQueue({ ratePerSecond: 4 })
    for (const name of ['1', '2', '3', '4', '5', '6']) void ask(name, 'schedule')
    for (const name of ['7', '8']) void ask(name, 'app', 600)
    const refused = await ask('9', 'app', 600)
    expect(refused).toEqual({ kind: 'refused', reason: 'budget', retryAfterMs: 1_000 })
    await pass(2_000)
    expect(order).toEqual(['1', '2', '9:budget', '7', '8', '3', '4', '5', '6'])
  })

  test('P5: refuses calls of any priority in a long pause, and lets them wait in a short one', async () => {
    const { ask, order, pass, queue } = aQueue({ concurrency: 1 })
    const held = await ask('held', 'schedule')
    void ask('waiting', 'schedule')
    queue.pause(60_000)
    await pass(0)
    expect(await ask('coming', 'schedule')).toEqual({ kind: 'refused', reason: 'rate_limited', retryAfterMs: 60_000 })
    expect(await ask('app', 'app', 10_000)).toMatchObject({ kind: 'refused', reason: 'rate_limited' })
    released(held)
    await pass(55_000)
    void ask('patient', 'schedule')
    void ask('app again', 'app', 65_000)
    await pass(4_999)
    expect(order).toEqual(['held', 'waiting:rate_limited', 'coming:rate_limited', 'app:rate_limited'])
    await pass(1)
    expect(order.slice(4)).toEqual(['app again'])
  })

  test('refuses everyone when the day’s calls are used up', async () => {
    const { ask, order, pass } = aQueue({ callsPerDay: 2, concurrency: 1 })
    const first = await ask('1', 'schedule')
    for (const name of ['2', '3', '4']) void ask(name, 'schedule').then(released)
    released(first)
    await pass(1_000)
    expect(order).toEqual(['1', '2', '3:budget', '4:budget'])
    expect(await ask('5', 'app', 60_000)).toEqual({ kind: 'refused', reason: 'budget', retryAfterMs: 3_600_000 })
  })

  test('makes no call while calls cannot be saved, and refuses waiting callers at once', async () => {
    const { ask, order, store, pass } = aQueue()
    store.isWell = false
    void ask('1', 'schedule')
    expect(await ask('2', 'app', 60_000)).toEqual({ kind: 'refused', reason: 'budget', retryAfterMs: 5_000 })
    expect([order, store.writes]).toEqual([['2:budget', '1:budget'], 1])
    store.isWell = true
    void ask('3', 'app')
    await pass(0)
    expect(order.at(-1)).toBe('3')
  })

  test('forgets callers that no longer wait, and keeps no timer for them', async () => {
    const { ask, order, pass, queue, timers } = aQueue({ ratePerSecond: 1 })
    const leaving = new AbortController()
    void ask('1', 'schedule')
    void ask('2', 'schedule', null, leaving.signal)
    leaving.abort()
    await pass(5_000)
    expect(order).toEqual(['1', '2:budget'])
    expect([queue.waiting(), timers()]).toEqual([0, 0])
  })

  test('refuses calls beyond its capacity, and has a separate capacity for apps', async () => {
    const { ask, queue } = aQueue({ concurrency: 1, waitingMax: 2 })
    await ask('held', 'schedule')
    void ask('1', 'schedule')
    void ask('2', 'schedule')
    expect((await ask('3', 'schedule')).kind).toBe('refused')
    void ask('4', 'app')
    expect(queue.waiting()).toBe(3)
  })

  test('frees only one slot if a permit is released twice', async () => {
    const { ask, budget } = aQueue({ concurrency: 2 })
    const first = await ask('1', 'schedule')
    await ask('2', 'schedule')
    released(first)
    released(first)
    expect(budget.inFlight()).toBe(1)
  })
})
