import { expect, test } from 'vitest'
import { createTidyReplicas } from '../../../src/server/replicas/replicas.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

function start() {
  const book = createLogBook()
  const done: string[] = []
  const world = { id: 1, isJanitor: false, configs: ['a', 'a'], isStoreDown: false }
  const note = (what: string) => async () => void done.push(what)
  const tidy = createTidyReplicas({
    replicas: {
      id: () => world.id,
      holds: (role) => role === 'janitor' && world.isJanitor,
      async list() {
        if (world.isStoreDown) throw new Error('gone')
        return world.configs.map((configFingerprint, at) => ({ name: `replica ${at}`, configFingerprint }))
      },
    },
    delivery: { restore: note('restore'), removeUnnamed: note('removeUnnamed') },
    clearMoves: note('clearMoves'),
    log: book.log,
  })
  return { tidy, world, done, warnings: () => book.lines.filter(({ level }) => level === 'warn').map(({ message }) => message) }
}

test('a replica that rejoined after it was declared dead first restores its endpoints', async () => {
  const { tidy, world, done } = start()
  await tidy()
  world.id = 2
  await tidy()
  await tidy()
  expect(done).toEqual(['removeUnnamed', 'restore', 'removeUnnamed', 'removeUnnamed'])
})

test('only the janitor clears the remains of a killed move', async () => {
  const { tidy, world, done } = start()
  world.isJanitor = true
  await tidy()
  expect(done).toEqual(['removeUnnamed', 'clearMoves'])
})

test('configs that differ are logged once, and again when they differ in another way', async () => {
  const { tidy, world, warnings } = start()
  const differ = async (configs: string[]) => {
    world.configs = configs
    await tidy()
  }
  await differ(['a', 'b'])
  await differ(['b', 'a'])
  expect(warnings()).toHaveLength(1)
  await differ(['a', 'a'])
  await differ(['a', 'b'])
  expect(warnings()).toEqual(Array(2).fill('replicas run with different configs; give all of them the same'))
})

test('a failing store is logged as a warning, and the next change tries again', async () => {
  const { tidy, world, done, warnings } = start()
  world.isStoreDown = true
  await tidy()
  world.isStoreDown = false
  await tidy()
  expect([warnings().length, done]).toEqual([1, ['removeUnnamed']])
})
