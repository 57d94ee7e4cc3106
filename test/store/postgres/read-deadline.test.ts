import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { StorageFailure } from '../../../src/domain/errors.ts'
import { createReadDeadline } from '../../../src/store/postgres/read-deadline.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const never = () => new Promise<never>(() => undefined)
/** What has become of a promise by now. */
const stateOf = async (promise: Promise<unknown>) =>
  await Promise.race([
    promise.then(
      () => 'answered',
      (error: unknown) => (error instanceof StorageFailure ? 'late' : 'failed'),
    ),
    Promise.resolve('waits').then((state) => state),
  ])

test('S18: a read that the server does not answer fails after 0.9 s', async () => {
  const deadline = createReadDeadline()
  const read = deadline.run(never)
  read.catch(() => undefined)
  await vi.advanceTimersByTimeAsync(800)
  expect(await stateOf(read)).toBe('waits')
  await vi.advanceTimersByTimeAsync(100)
  expect(await stateOf(read)).toBe('late')
})

test('a read waits as long as the server answers others: it is busy, not away', async () => {
  const deadline = createReadDeadline()
  const { promise, resolve } = Promise.withResolvers<number>()
  const read = deadline.run(() => promise)
  for (let passedMs = 0; passedMs < 10_000; passedMs += 500) {
    await vi.advanceTimersByTimeAsync(500)
    await deadline.run(async () => 1)
  }
  expect(await stateOf(read)).toBe('waits')
  resolve(7)
  expect(await read).toBe(7)
})

test('that other reads fail at once does not keep one waiting', async () => {
  const deadline = createReadDeadline()
  const read = deadline.run(never)
  read.catch(() => undefined)
  for (let turn = 0; turn < 9; turn++) {
    await vi.advanceTimersByTimeAsync(100)
    await deadline.run(() => Promise.reject(new Error('connection refused'))).catch(() => undefined)
  }
  expect(await stateOf(read)).toBe('late')
})

test('one read that takes long fails alone: what is asked after it has a second of its own', async () => {
  const deadline = createReadDeadline()
  const long = deadline.run(never)
  await Promise.all([expect(long).rejects.toThrow(StorageFailure), vi.advanceTimersByTimeAsync(2000)])
  const { promise, resolve } = Promise.withResolvers<number>()
  const read = deadline.run(() => promise)
  await vi.advanceTimersByTimeAsync(800)
  resolve(7)
  expect(await read).toBe(7)
})

test('a process that stood still has not waited: one turn passes, however long it was', async () => {
  vi.useRealTimers()
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const deadline = createReadDeadline()
  const { promise, resolve } = Promise.withResolvers<number>()
  const read = deadline.run(() => promise)
  vi.advanceTimersToNextTimer()
  resolve(7)
  expect(await read).toBe(7)
})

test('a read that fails says why, at once', async () => {
  const deadline = createReadDeadline()
  await expect(deadline.run(() => Promise.reject(new Error('no such table')))).rejects.toThrow('no such table')
})
