import { expect, test } from 'vitest'
import { createSharedBudget } from '../../../src/core/carrier/budget/carrier-budget.ts'
import { createCallQueue } from '../../../src/core/carrier/call/call-queue.ts'
import { type BudgetLimits, type BudgetRequest, settleBudget, UNUSED_BUDGET } from '../../../src/core/domain/polling/call-budget.ts'
import { DAY_MS, HOUR_MS } from '../../support/runner/constants.ts'
import { casesOf } from '../../support/runner/long-form.ts'
import { seeded } from '../../support/runner/seeded.ts'
import { createTimeline } from './timeline.ts'

const TIMEOUT_MS = 10_000
/** Shortly before midnight, so that the day changes during a run. */
const START_MS = Date.parse('2026-03-01T23:55:00Z')
/** After a pause is saved, a slot that was granted earlier may still be used for this long. */
const USED_WITHIN_MS = 250
/** A pause is saved within this time, except after several failures in a row. */
const SAVED_WITHIN_MS = 5000

interface Call {
  readonly atMs: number
  readonly day: number
  endMs: number
}

/** Simulates replicas that share one database row. Each message to or from the server takes time, and a change locks the row for one round trip. */
function openModel(seed: number, { troubles = 1, wayMs = null as number | null } = {}) {
  const random = seeded(seed)
  const pick = (least: number, most: number) => Math.floor(least + random() * (most - least + 1))
  const { clock: time, startTimer, pass } = createTimeline(0)
  const trueMs = time.monotonic
  const limits = {
    ratePerSecond: random() < 0.5 ? pick(1, 60) : pick(5, 60) / 10,
    callsPerDay: random() < 0.3 ? pick(20, 300) : 5000,
    concurrency: random() < 0.5 ? pick(1, 6) : 100,
  }
  const calls: Call[] = []
  const pauses: { readonly fromMs: number; readonly untilMs: number }[] = []
  let offsetMs = 0
  let answered = 0
  const serverMs = () => START_MS + Math.floor(trueMs()) + offsetMs
  let row = UNUSED_BUDGET
  let lock = Promise.resolve()
  const wait = (ms: number) => new Promise<void>((resolve) => startTimer(ms, resolve))
  const slowest = troubles === 0 || random() < 0.5 ? 8 : 60
  const latencyMs = () => wayMs ?? (random() < 0.04 * troubles ? pick(50, 400) : pick(1, slowest))

  function start(name: string) {
    const startedMs = trueMs()
    let isAlive = true
    const own: Call[] = []
    const clock = { now: () => 0, monotonic: () => trueMs() - startedMs }
    const alone: typeof startTimer = (ms, work) => startTimer(ms, () => (isAlive ? work() : undefined))
    const decide = async (request: BudgetRequest, limits: BudgetLimits) => {
      const nowMs = serverMs()
      const settled = settleBudget(row, { nowMs, wallMs: nowMs }, request, limits)
      await wait(latencyMs() + latencyMs())
      if (random() < 0.004 * troubles) throw new Error('the connection is lost before the commit')
      row = settled.row
      return settled.answer
    }
    const store = {
      async settle(request: BudgetRequest, limits: BudgetLimits) {
        await wait(latencyMs())
        const decided = lock.then(() => decide(request, limits))
        lock = decided.then(
          () => undefined,
          () => undefined,
        )
        const answer = await decided
        await wait(latencyMs())
        if (random() < 0.004 * troubles) throw new Error('the connection is lost after the commit')
        return answer
      },
    }
    const shared = createSharedBudget({ ...limits, store, replica: name, timeoutMs: TIMEOUT_MS, clock, startTimer: alone })
    const queue = createCallQueue({
      budget: shared,
      clock,
      startTimer: alone,
      pausePatienceMs: 10_000,
      waitingMax: 1000,
      writeDown: (waiting) => shared.reserve(waiting).catch(() => false),
    })
    const call = (release: () => void): void => {
      const lastsMs = random() < 0.05 ? TIMEOUT_MS : pick(5, 800)
      const made = { atMs: trueMs(), day: Math.floor(serverMs() / DAY_MS), endMs: trueMs() + lastsMs }
      calls.push(made)
      own.push(made)
      alone(lastsMs, () => {
        if (random() < 0.003 * troubles) {
          const waitMs = pick(1, 40) * 1000
          queue.pause(waitMs)
          const untilMs = trueMs() + waitMs
          const save = async (): Promise<void> => {
            await shared.settle()
            pauses.push({ fromMs: trueMs() + USED_WITHIN_MS, untilMs })
          }
          const saveAtLast = (): Promise<void> => save().catch(() => (isAlive ? saveAtLast() : undefined))
          void saveAtLast()
        }
        answered += 1
        release()
      })
    }
    return {
      async ask() {
        const priority = random() < 0.3 ? 'app' : 'schedule'
        const slot = await queue.take({ priority, giveUpAtMs: null, signal: new AbortController().signal })
        if (slot.kind === 'granted' && isAlive) call(slot.release)
      },
      kill() {
        isAlive = false
        // A killed replica loses its connections, so the carrier sees its calls end.
        for (const one of own) one.endMs = Math.min(one.endMs, trueMs())
      },
    }
  }

  const jump = (ms: number): void => {
    offsetMs += ms
  }
  return { random, pick, pass, start, limits, calls, pauses, jump, answered: () => answered }
}

test('P12, P13: three replicas exceed no limit despite kills, pauses and clocks put back', async () => {
  let total = 0
  for (let seed = 1; seed <= casesOf(24, 8); seed++) {
    const model = openModel(seed * 7919)
    const { random, pick, pass, limits, calls, pauses } = model
    let names = 0
    const replicas = [0, 1, 2].map(() => model.start(`r${names++}`))
    for (let step = 0; step < 100; step++) {
      for (let asked = pick(0, 60); asked > 0; asked--) void replicas[pick(0, 2)]?.ask()
      await pass(pick(50, 6000))
      if (random() < 0.15) {
        // First let the replicas save the last pause that the carrier asked for.
        await pass(SAVED_WITHIN_MS)
        const at = pick(0, 2)
        replicas[at]?.kill()
        replicas[at] = model.start(`r${names++}`)
      }
      if (random() < 0.05) model.jump(-pick(1, 40 * 60) * 60_000)
    }
    const byDay = Map.groupBy(calls, ({ day }) => day)
    for (const { length } of byDay.values()) expect(length).toBeLessThanOrEqual(limits.callsPerDay)
    for (const { atMs } of calls) {
      const within = calls.filter((one) => one.atMs >= atMs && one.atMs <= atMs + 1000).length
      expect(within).toBeLessThanOrEqual(Math.max(1, 1.5 * limits.ratePerSecond))
      expect(calls.filter((one) => one.atMs <= atMs && one.endMs > atMs).length).toBeLessThanOrEqual(limits.concurrency)
      expect(pauses.filter(({ fromMs, untilMs }) => atMs > fromMs && atMs < untilMs)).toEqual([])
    }
    total += calls.length
    // The budget still works: on a new day without pauses every caller is answered.
    model.jump(100 * DAY_MS + HOUR_MS)
    const before = model.answered()
    // Try several times, because the simulated carrier may still ask for a pause.
    for (let minute = 0; minute < 4; minute++) {
      await pass(60_000)
      for (const replica of replicas) void replica.ask()
    }
    await pass(60_000)
    expect(model.answered()).toBeGreaterThan(before + 3)
  }
  expect(total).toBeGreaterThan(casesOf(15_000, 3_000))
})

test('three replicas whose calls are always waiting use at least 90 % of any rate', async () => {
  for (const ratePerSecond of [2, 5, 20, 100]) {
    const model = openModel(ratePerSecond, { troubles: 0 })
    Object.assign(model.limits, { ratePerSecond, callsPerDay: 1_000_000, concurrency: 1000 })
    const replicas = ['a', 'b', 'c'].map((name) => model.start(name))
    for (let at = 0; at < 60 * ratePerSecond; at++) void replicas[at % 3]?.ask()
    await model.pass(20_000)
    const firstMs = model.calls[0]?.atMs ?? 0
    const inTenSeconds = model.calls.filter(({ atMs }) => atMs <= firstMs + 10_000).length
    expect(inTenSeconds).toBeGreaterThanOrEqual(10 * ratePerSecond * 0.9)
  }
})

test('three replicas 10 ms from the server make 50 calls a second in all, and never over 75', async () => {
  const model = openModel(50, { troubles: 0, wayMs: 5 })
  Object.assign(model.limits, { ratePerSecond: 50, callsPerDay: 1_000_000, concurrency: 1000 })
  const replicas = ['a', 'b', 'c'].map((name) => model.start(name))
  for (let at = 0; at < 3000; at++) void replicas[at % 3]?.ask()
  await model.pass(30_000)
  const times = model.calls.map(({ atMs }) => atMs)
  expect(times.filter((atMs) => atMs < (times[0] ?? 0) + 20_000).length).toBeGreaterThanOrEqual(20 * 50)
  for (const from of times) expect(times.filter((atMs) => atMs >= from && atMs <= from + 1000).length).toBeLessThanOrEqual(75)
})
