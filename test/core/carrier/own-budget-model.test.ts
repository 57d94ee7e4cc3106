import { expect, test } from 'vitest'
import { createBudgetSaver, createOwnBudget, remainingWaitMs } from '../../../src/core/carrier/budget/own-budget.ts'
import { createCallQueue } from '../../../src/core/carrier/call/call-queue.ts'
import type { CarrierMemory } from '../../../src/core/domain/polling/call-budget.ts'
import { DAY_MS, HOUR_MS } from '../../support/runner/constants.ts'
import { createLogBook } from '../../support/runner/log-book.ts'
import { createTimeline } from './timeline.ts'

const WRITE_MS = 5
/** Shortly before midnight, so that the day changes during a run. */
const START_MS = Date.parse('2026-03-01T23:55:00Z')
const log = { debug() {}, info() {}, warn() {}, error() {} }

function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0
    return ((state ^ (state >>> 12)) >>> 0) / 4_294_967_296
  }
}

/** Simulates a relay and a carrier that sometimes asks for a pause. `start` restarts the relay, and `jump` moves its clock. */
function openModel(seed: number) {
  const random = createRandom(seed)
  const pick = (least: number, most: number) => Math.floor(least + random() * (most - least + 1))
  const timeline = createTimeline(0)
  const { startTimer, pass } = timeline
  const trueMs = timeline.clock.monotonic
  const limits = { ratePerSecond: pick(1, 12), callsPerDay: pick(20, 3000), concurrency: pick(1, 6) }
  const calls: { readonly atMs: number; readonly day: number }[] = []
  let offsetMs = 0
  let kept: CarrierMemory | null = null
  let pausedUntilMs = 0
  let run = 0
  let answered = 0

  function start() {
    const own = ++run
    const startedMs = trueMs()
    const clock = { now: () => START_MS + trueMs() + offsetMs, monotonic: () => trueMs() - startedMs }
    const memory = kept
    const earlier = memory && { ...memory, pausedUntilMs: remainingWaitMs(memory.pausedUntilMs, memory.atMs, clock.now()), endedMs: 0 }
    const budget = createOwnBudget({ ...limits, earlier })
    const remember = (next: CarrierMemory) =>
      new Promise<void>((resolve) => {
        startTimer(WRITE_MS, () => {
          if (own !== run) return
          kept = next
          resolve()
        })
      })
    const tokens = { pausedUntilMs: () => 0, refusal: () => null }
    const saver = createBudgetSaver({ budget, tokens: () => tokens, remember, clock, asking: { lastMs: () => 0 }, log })
    const alone: typeof startTimer = (ms, work) => startTimer(ms, () => (own === run ? work() : undefined))
    const queue = createCallQueue({
      budget,
      clock,
      startTimer: alone,
      pausePatienceMs: 10_000,
      waitingMax: 1000,
      writeDown: saver.keep,
    })
    const ask = async () => {
      const slot = await queue.take({
        priority: random() < 0.3 ? 'app' : 'schedule',
        giveUpAtMs: null,
        signal: new AbortController().signal,
      })
      if (slot.kind === 'refused' || own !== run) return
      expect(trueMs()).toBeGreaterThanOrEqual(pausedUntilMs)
      calls.push({ atMs: trueMs(), day: Math.floor(clock.now() / DAY_MS) })
      alone(random() < 0.05 ? 10_000 : pick(5, 800), () => {
        if (random() < 0.03) {
          const waitMs = pick(1, 40) * 1000
          queue.pause(waitMs)
          pausedUntilMs = Math.max(pausedUntilMs, trueMs() + waitMs)
          void saver.keep()
        }
        answered += 1
        slot.release()
      })
    }
    return { ask: () => void ask(), keep: saver.keep }
  }

  const jump = (ms: number): void => {
    offsetMs += ms
  }
  return { random, pick, pass, start, limits, calls, jump, answered: () => answered }
}

test('P12: a count that cannot be saved is an error while the relay runs, and none while it stops', async () => {
  const saverOf = () => {
    const { log, lines } = createLogBook()
    const clock = { now: () => 0, monotonic: () => 0 }
    const budget = createOwnBudget({ callsPerDay: 100, ratePerSecond: 1, concurrency: 1 })
    const tokens = () => ({ pausedUntilMs: () => 0, refusal: () => null })
    const remember = () => Promise.reject(new Error('SQLITE_FULL'))
    return { lines, saver: createBudgetSaver({ budget, tokens, remember, clock, asking: { lastMs: () => 0 }, log }) }
  }
  const stopping = saverOf()
  expect(await stopping.saver.close()).toBe(false)
  expect(stopping.lines.map(({ level }) => level)).toEqual(['info'])
  const running = saverOf()
  expect(await running.saver.keep()).toBe(false)
  expect(await running.saver.close()).toBe(false)
  expect(running.lines.map(({ level }) => level)).toEqual(['error'])
})

test('P12, P13: no limit of the budget is exceeded despite kills, pauses, hangs and clock jumps', async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const model = openModel(seed * 7919)
    const { random, pick, pass, limits, calls } = model
    let relay = model.start()
    for (let step = 0; step < 120; step++) {
      for (let asked = pick(0, 8); asked > 0; asked--) relay.ask()
      await pass(pick(50, 6000))
      if (random() < 0.15) {
        // First let the relay save the last wait that the carrier asked for.
        await pass(3 * WRITE_MS)
        relay = model.start()
      }
      if (random() < 0.05) {
        model.jump(pick(-12, 12) * HOUR_MS)
        void relay.keep()
        await pass(3 * WRITE_MS)
      }
    }
    const byDay = Map.groupBy(calls, ({ day }) => day)
    for (const { length } of byDay.values()) expect(length).toBeLessThanOrEqual(limits.callsPerDay)
    for (const { atMs } of calls) {
      const within = calls.filter((one) => one.atMs >= atMs && one.atMs <= atMs + 1000).length
      expect(within).toBeLessThanOrEqual(Math.max(1, 1.5 * limits.ratePerSecond))
    }
    // The budget still works: on a later day, a call is answered.
    model.jump(3 * DAY_MS)
    await pass(60_000)
    const before = model.answered()
    relay.ask()
    await pass(60_000)
    expect(model.answered()).toBeGreaterThan(before)
  }
})
