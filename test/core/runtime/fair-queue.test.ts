import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createFairQueue } from '../../../src/core/runtime/fair-queue.ts'

const refused = new Error('too much waits')

function openQueue(bounds: { readonly waitingMax: number; readonly waitingPerKeyMax: number }) {
  const queue = createFairQueue({ ...bounds, refuse: () => refused })
  const started: string[] = []
  const ends: PromiseWithResolvers<void>[] = []
  const outcomes: string[] = []
  return {
    started,
    outcomes,
    bring(key: string, name: string, isWanted = () => true): void {
      const work = async () => {
        started.push(name)
        const end = Promise.withResolvers<void>()
        ends.push(end)
        await end.promise
      }
      queue.run(key, work, isWanted).then(
        () => outcomes.push(`${name} done`),
        (error: unknown) => outcomes.push(`${name} ${error === refused ? 'refused' : 'failed'}`),
      )
    },
    async end(error?: Error): Promise<void> {
      const last = ends.at(-1)
      if (error === undefined) last?.resolve()
      else last?.reject(error)
      await nextTurn()
    },
  }
}

const WIDE = { waitingMax: 100, waitingPerKeyMax: 100 }

test('I17: jobs run one at a time, and a single job waits for at most one job of another caller', async () => {
  const { bring, end, started } = openQueue(WIDE)
  for (let nth = 0; nth < 50; nth++) bring('flood', `flood ${nth}`)
  bring('honest', 'honest')
  expect(started).toEqual(['flood 0'])
  await end()
  await end()
  expect(started).toEqual(['flood 0', 'flood 1', 'honest'])
  await end()
  expect(started.at(-1)).toBe('flood 2')
})

test('I17: three jobs may wait per key, four in total; beyond four, the fullest key loses one', async () => {
  const { bring, end, started, outcomes } = openQueue({ waitingMax: 4, waitingPerKeyMax: 3 })
  for (let nth = 0; nth < 6; nth++) bring('flood', `flood ${nth}`)
  await nextTurn()
  expect(outcomes).toEqual(['flood 4 refused', 'flood 5 refused'])
  for (const name of ['first', 'second', 'third', 'fourth']) bring(name, name)
  await nextTurn()
  expect(outcomes.slice(2)).toEqual(['flood 3 refused', 'flood 2 refused', 'fourth refused'])
  for (let nth = 0; nth < 5; nth++) await end()
  expect(started).toEqual(['flood 0', 'flood 1', 'first', 'second', 'third'])
})

test('a job whose caller has left is not begun, and a failure delays no other job', async () => {
  const { bring, end, started, outcomes } = openQueue(WIDE)
  bring('a', 'fails')
  bring('b', 'left', () => false)
  bring('c', 'last')
  await end(new Error('broken'))
  await end()
  expect(started).toEqual(['fails', 'last'])
  expect(outcomes.sort()).toEqual(['fails failed', 'last done', 'left refused'])
})
