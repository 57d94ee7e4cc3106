import { expect, test } from 'vitest'
import { createCommitThrottle } from '../../../../src/core/runtime/threads/ring-buffer.ts'

/** Opens a throttle on a clock that the test moves, and records how long each commit waited, in milliseconds. */
function openThrottle(everyMs: number) {
  let nowMs = 1000
  const waitsMs: number[] = []
  const pass = (ms: number) => {
    nowMs += ms
  }
  const throttle = createCommitThrottle(
    { everyMs, many: 9 },
    () => nowMs,
    (ms) => {
      waitsMs.push(ms)
      pass(ms)
    },
  )
  return { ...throttle, waitsMs, pass }
}

test('a single observation is committed without a wait', () => {
  const { keep, begins, waitsMs } = openThrottle(60_000)
  keep(0)
  begins(20)
  begins(1)
  keep(1)
  expect(waitsMs).toEqual([])
})

test('many waiting observations are committed without a further wait', () => {
  const { keep, begins, waitsMs } = openThrottle(60_000)
  begins(9)
  keep(9)
  expect(waitsMs).toEqual([])
})

test('after a batch of several, a small commit begins when its time has come, not before', () => {
  const { keep, begins, waitsMs, pass } = openThrottle(20)
  begins(20)
  pass(15)
  keep(8)
  begins(20)
  keep(8)
  expect(waitsMs).toEqual([5, 20])
})

test('a commit whose time has come does not wait', () => {
  const { keep, begins, waitsMs, pass } = openThrottle(60_000)
  begins(20)
  pass(60_000)
  keep(8)
  expect(waitsMs).toEqual([])
})

test('a commit that must wait blocks the thread for the remaining time', () => {
  const startMs = performance.now()
  const { keep, begins } = createCommitThrottle({ everyMs: 20, many: 9 }, () => 1000)
  begins(20)
  keep(8)
  expect(performance.now() - startMs).toBeGreaterThan(19)
})

test('the throttle is busy while many wait at each commit, and for a moment afterwards', () => {
  const { keep, isBusy, pass } = openThrottle(20)
  keep(8)
  expect(isBusy()).toBe(false)
  keep(9)
  pass(10)
  expect(isBusy()).toBe(true)
  pass(10)
  expect(isBusy()).toBe(false)
})
