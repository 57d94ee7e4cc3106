import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startRepeating } from '../../../src/core/runtime/schedule.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('work is repeated an interval after its end, not after its beginning', async () => {
  const began: PromiseWithResolvers<void>[] = []
  startRepeating(() => {
    const work = Promise.withResolvers<void>()
    began.push(work)
    return work.promise
  }, 1000)
  await vi.advanceTimersByTimeAsync(5000)
  expect(began).toHaveLength(1)
  began[0]?.resolve()
  await vi.advanceTimersByTimeAsync(999)
  expect(began).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(began).toHaveLength(2)
})

test('after a stop no work begins, even if running work ends later', async () => {
  const work = Promise.withResolvers<void>()
  let times = 0
  const repeating = startRepeating(() => {
    times += 1
    return work.promise
  }, 1000)
  await vi.advanceTimersByTimeAsync(1000)
  repeating.stop()
  work.resolve()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(times).toBe(1)
})
