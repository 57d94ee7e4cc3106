import { expect, test } from 'vitest'
import { createCommitThrottle } from '../../../src/runtime/threads/commit-throttle.ts'

function timed(work: () => void): number {
  const startMs = performance.now()
  work()
  return performance.now() - startMs
}

test('one alone is committed at once, because nobody else waits', () => {
  const pace = createCommitThrottle({ everyMs: 60_000, many: 9 }, () => performance.now())
  expect(timed(() => pace.keep(0))).toBeLessThan(30_000)
  pace.begins(20)
  pace.begins(1)
  expect(timed(() => pace.keep(1))).toBeLessThan(30_000)
})

test('many are committed at once, because they are worth it', () => {
  const pace = createCommitThrottle({ everyMs: 60_000, many: 9 }, () => performance.now())
  pace.begins(9)
  expect(timed(() => pace.keep(9))).toBeLessThan(30_000)
})

test('after several the next commit of a few begins when its time has come, and not before', () => {
  let nowMs = 1000
  const pace = createCommitThrottle({ everyMs: 20, many: 9 }, () => nowMs)
  pace.begins(20)
  expect(timed(() => pace.keep(8))).toBeGreaterThan(19)
  nowMs += 15
  expect(timed(() => pace.keep(8))).toBeGreaterThan(4)
})

test('when its time has come nobody waits', () => {
  let nowMs = 1000
  const pace = createCommitThrottle({ everyMs: 60_000, many: 9 }, () => nowMs)
  pace.begins(20)
  nowMs += 60_000
  expect(timed(() => pace.keep(8))).toBeLessThan(30_000)
})

test('it is a rush while many wait at each commit, and until a moment later', () => {
  let nowMs = 1000
  const pace = createCommitThrottle({ everyMs: 20, many: 9 }, () => nowMs)
  pace.keep(8)
  expect(pace.isBusy()).toBe(false)
  pace.keep(9)
  nowMs += 10
  expect(pace.isBusy()).toBe(true)
  nowMs += 10
  expect(pace.isBusy()).toBe(false)
})
