import { expect, test } from 'vitest'
import { createPollerPass } from '../../../../src/core/flow/polling/poller.ts'
import { HOUR_MS } from '../../../support/runner/constants.ts'
import { createLogBook } from '../../../support/runner/log-book.ts'

function start() {
  const done: string[] = []
  const world = { isPoller: true, trouble: null as string | null, wallMs: 100 * HOUR_MS, isModelGone: false }
  const note = async (what: string) => void done.push(what)
  const poller = createPollerPass(
    {
      write: {
        async shiftSchedule({ byMs }) {
          await note(`shift ${byMs / HOUR_MS} h`)
          return null
        },
      },
      clock: { now: () => world.wallMs, monotonic: () => 0 },
      async poll() {
        await note('poll')
        return 'busy'
      },
      isPoller: () => world.isPoller,
      storeTrouble: () => world.trouble,
      model: {
        async load() {
          if (world.isModelGone) throw new Error('gone')
          await note('take over')
        },
        fold: () => note('fold'),
      },
      lookAtPushes: () => note('look at pushes'),
      onShifted: () => undefined,
      log: createLogBook().log,
    },
    null,
  )
  return { poller, world, done }
}

test('one pass learns from the samples of other replicas, polls, and checks the pushes', async () => {
  const { poller, done } = start()
  expect(await poller.pass()).toBe('busy')
  expect(done).toEqual(['fold', 'poll', 'look at pushes'])
})

test('a replica that is not the poller, or has no store, does nothing', async () => {
  const { poller, world, done } = start()
  world.isPoller = false
  expect(await poller.pass()).toBe('idle')
  Object.assign(world, { isPoller: true, trouble: 'lost' })
  expect([await poller.pass(), done]).toEqual(['idle', []])
})

test('a full disk stops polls, and the other work of a pass continues', async () => {
  const { poller, world, done } = start()
  world.trouble = 'short'
  expect(await poller.pass()).toBe('idle')
  expect(done).toEqual(['fold', 'look at pushes'])
})

test('a new poller takes over once, before its first pass, and retries after a failure', async () => {
  const { poller, world, done } = start()
  poller.begin()
  world.isModelGone = true
  await expect(poller.pass()).rejects.toThrow('gone')
  world.isModelGone = false
  await poller.pass()
  await poller.pass()
  expect(done).toEqual(['take over', 'fold', 'poll', 'look at pushes', 'fold', 'poll', 'look at pushes'])
})

test('a clock put back shifts the schedule, unless the previous poller has already done so', async () => {
  const { poller, world, done } = start()
  world.wallMs -= 2 * HOUR_MS
  poller.begin()
  await poller.pass()
  expect(done).not.toContain('shift 2 h')
  world.wallMs -= HOUR_MS
  await poller.adjustToClock()
  expect(done).toContain('shift 1 h')
})
