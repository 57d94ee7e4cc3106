import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { createChangeTable, hasChanged, markOf, tellChanged } from '../../../src/core/runtime/answer-cache.ts'

test('a parcel counts as changed since a mark only if it changed after the mark', () => {
  const changes = createChangeTable()
  const start = markOf(changes)
  tellChanged(changes, [1, 2])
  const between = markOf(changes)
  tellChanged(changes, [2, 3])
  const end = markOf(changes)
  const told = (mark: bigint) => [1, 2, 3, 4].map((parcelId) => hasChanged(changes, parcelId, mark))
  expect([start, between, end].map(told)).toEqual([
    [true, true, true, false],
    [false, true, true, false],
    [false, false, false, false],
  ])
})

test('a change never replaces a later change, whichever threads they come from', async () => {
  const changes = createChangeTable()
  const file = new URL('../../support/threads/changes-thread.ts', import.meta.url)
  let running = 2
  for (let nth = 0; nth < running; nth++) new Worker(file, { workerData: changes }).once('exit', () => running--)
  let last = 0n
  let turnedBack = 0
  while (running > 0) {
    for (let look = 0; look < 10_000; look++) {
      const seen = changes.last[7] ?? 0n
      if (seen < last) turnedBack++
      last = seen
    }
    await nextTurn()
  }
  expect(turnedBack).toBe(0)
  expect(markOf(changes)).toBe(2n * 200_000n)
  expect([hasChanged(changes, 7, markOf(changes) - 1n), hasChanged(changes, 7, markOf(changes))]).toEqual([true, false])
})
