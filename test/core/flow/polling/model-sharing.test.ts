import { expect, test } from 'vitest'
import { createModelSharing } from '../../../../src/core/flow/polling/shared-model.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

function open() {
  const book = createLogBook()
  const done: string[] = []
  const world = { isPoller: false, isStoreDown: false }
  const note = async (what: string) => {
    if (world.isStoreDown) throw new Error('gone')
    done.push(what)
  }
  const sharing = createModelSharing({
    model: { leave: () => note('leaves'), load: ({ resume }) => note(resume ? 'resumes' : 'follows') },
    isPoller: () => world.isPoller,
    lookAtPushes: () => note('looks at the pushes'),
    log: book.log,
  })
  return { sharing, world, done, logged: () => book.lines.map(({ level, message }) => `${level}: ${message}`) }
}

test('a replica that does not poll loads the model, and then checks the health of pushes', async () => {
  const { sharing, done } = open()
  await sharing.load()
  expect(done).toEqual(['follows', 'looks at the pushes'])
})

test('the poller keeps its own model, and shares what it learnt before it became the poller', async () => {
  const { sharing, world, done } = open()
  world.isPoller = true
  await sharing.load()
  await sharing.leave()
  expect(done).toEqual(['leaves'])
})

test('a store that fails is logged, and the next call tries again', async () => {
  const { sharing, world, done, logged } = open()
  world.isStoreDown = true
  await sharing.load()
  await sharing.leave()
  expect(logged()).toEqual([
    'debug: cannot read the model of the carrier; the relay tries again',
    'debug: cannot tell the poller what this replica has learnt; the relay tries again',
  ])
  world.isStoreDown = false
  await sharing.leave()
  expect(done).toEqual(['leaves'])
})
