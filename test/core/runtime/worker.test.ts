import { expect, test } from 'vitest'
import { type PassResult, startWorker } from '../../../src/core/runtime/schedule.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('a worker repeats busy passes, rests after an idle one, and starts again when woken', async () => {
  const results: PassResult[] = ['busy', 'busy', 'idle', 'idle']
  let passes = 0
  const worker = startWorker(
    async () => results[passes++] ?? 'idle',
    () => undefined,
  )
  worker.wake()
  await settled()
  expect(passes).toBe(3)
  worker.wake()
  await settled()
  expect(passes).toBe(4)
  await worker.stop()
  worker.wake()
  await settled()
  expect(passes).toBe(4)
})

test('a failed pass is reported and rests like an idle one', async () => {
  const failures: unknown[] = []
  let passes = 0
  const worker = startWorker(
    async () => {
      passes++
      throw new Error('broken')
    },
    (error) => failures.push(error),
  )
  worker.wake()
  await settled()
  expect([passes, failures.length]).toEqual([1, 1])
  await worker.stop()
})

test('a wake during a pass causes another pass after it, never at the same time', async () => {
  let running = 0
  let most = 0
  let passes = 0
  const worker = startWorker(
    async () => {
      most = Math.max(most, ++running)
      if (passes++ === 0) worker.wake()
      await settled()
      running--
      return 'idle'
    },
    () => undefined,
  )
  worker.wake()
  await settled()
  await settled()
  await settled()
  expect([passes, most]).toEqual([2, 1])
  await worker.stop()
})
