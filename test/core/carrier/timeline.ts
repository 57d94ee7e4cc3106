import type { Clock } from '../../../src/core/flow/ports.ts'
import type { StartTimer } from '../../../src/core/outbound/deadline.ts'

export interface Timeline {
  readonly clock: Clock
  readonly startTimer: StartTimer
  /** Moves the clock on by `ms`, and runs each timer at its time. Before each timer, promises settle. */
  readonly pass: (ms: number) => Promise<void>
  readonly timers: () => number
}

/** Makes a clock and timers that the test controls. */
export function createTimeline(wallAtStartMs: number = Date.parse('2026-03-01T12:00:00Z')): Timeline {
  let nowMs = 0
  const timers = new Set<{ readonly atMs: number; readonly run: () => void }>()
  return {
    clock: { now: () => wallAtStartMs + nowMs, monotonic: () => nowMs },
    startTimer(delayMs, run) {
      const timer = { atMs: nowMs + delayMs, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    async pass(ms) {
      const endMs = nowMs + ms
      for (;;) {
        await settled()
        const [next] = [...timers].sort((a, b) => a.atMs - b.atMs)
        if (next === undefined || next.atMs > endMs) break
        timers.delete(next)
        nowMs = Math.max(nowMs, next.atMs)
        next.run()
      }
      nowMs = endMs
    },
    timers: () => timers.size,
  }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}
