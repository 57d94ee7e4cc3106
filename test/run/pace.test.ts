import { expect, test } from 'vitest'
import { createPace } from '../../src/run/pace.ts'

function timed(work: () => void): number {
  const startMs = performance.now()
  work()
  return performance.now() - startMs
}

test('who comes alone is committed at once', () => {
  const pace = createPace(60_000, () => performance.now())
  expect(timed(pace.keep)).toBeLessThan(30_000)
  pace.begins(1)
  expect(timed(pace.keep)).toBeLessThan(30_000)
})

test('after several the next commit begins when its time has come, and not before', () => {
  let nowMs = 1000
  const pace = createPace(20, () => nowMs)
  pace.begins(2)
  expect(timed(pace.keep)).toBeGreaterThan(19)
  nowMs += 15
  expect(timed(pace.keep)).toBeGreaterThan(4)
  nowMs += 5
  pace.begins(1)
  pace.keep()
})
