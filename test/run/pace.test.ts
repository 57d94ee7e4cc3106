import { expect, test } from 'vitest'
import { createPace } from '../../src/run/pace.ts'

function timed(work: () => void): number {
  const startMs = performance.now()
  work()
  return performance.now() - startMs
}

test.each([1, 9])('%i at a time are committed at once: one because nobody else waits, many because they are worth it', (size) => {
  const pace = createPace({ everyMs: 60_000, many: 9 }, () => performance.now())
  expect(timed(pace.keep)).toBeLessThan(30_000)
  pace.begins(size)
  expect(timed(pace.keep)).toBeLessThan(30_000)
})

test('after a few the next commit begins when its time has come, and not before', () => {
  let nowMs = 1000
  const pace = createPace({ everyMs: 20, many: 9 }, () => nowMs)
  pace.begins(2)
  expect(timed(pace.keep)).toBeGreaterThan(19)
  nowMs += 15
  expect(timed(pace.keep)).toBeGreaterThan(4)
  nowMs += 5
  pace.begins(1)
  pace.keep()
})
