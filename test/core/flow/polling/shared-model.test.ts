import { expect, test } from 'vitest'
import type { ScanSample } from '../../../../src/core/domain/polling/scan-rate.ts'
import { createSharedModel, type SharedModelPorts } from '../../../../src/core/flow/polling/shared-model.ts'

const sample: ScanSample = { kind: 'wait', status: 'Ingested', entryCount: 1, fromMs: 1000, toMs: 5000, scanned: true }

/** Opens two replicas with a shared table, and records the samples that reach their models. */
function openReplicas() {
  const lessons: string[] = []
  const told: string[] = []
  let poller = 'one'
  const open = (name: string) => {
    const note = (what: string) => (value: unknown) => void told.push(`${name} ${what} ${JSON.stringify(value)}`)
    const keeper = {
      learn: note('learns'),
      pushed: (atMs: number, count: number) => note('pushed')([atMs, count]),
      misread: (atMs: number, count: number) => note('misread')([atMs, count]),
      foundByPoll: note('found'),
      settle: () => note('settles')(0),
      learnt: () => ({ scanRate: name, channel: { health: 'healthy' } }),
    }
    const checkpoint = {
      async keep() {
        note('saves')(0)
        return { health: 'healthy', eventQueued: true }
      },
    }
    const ports = {
      table: {
        add: async (lesson: string) => void lessons.push(lesson),
        take: async (_id: number, limit: number) => lessons.splice(0, limit),
      },
      keeper,
      checkpoint,
      isPoller: () => poller === name,
      replicaId: () => 1,
      log: { error: note('logs') },
    }
    // Only the ports that the test needs exist.
    return createSharedModel(ports as unknown as SharedModelPorts)
  }
  return {
    one: open('one'),
    two: open('two'),
    lessons,
    told,
    become(name: string) {
      poller = name
    },
  }
}

test('samples of a replica reach the poller once, and the poller learns its own at once', async () => {
  const { one, two, told, lessons } = openReplicas()
  one.keeper.learn(sample)
  two.keeper.learn(sample)
  two.keeper.pushed(100, 2)
  two.keeper.pushed(90, 1)
  two.keeper.misread(95, 2)
  two.keeper.foundByPoll(50)
  await two.leave()
  await two.leave()
  expect(lessons).toHaveLength(1)
  await one.fold()
  await one.fold()
  expect(told).toEqual([
    `one learns ${JSON.stringify(sample)}`,
    `one learns ${JSON.stringify(sample)}`,
    'one pushed [100,3]',
    'one misread [95,2]',
    'one found 50',
  ])
})

test('at most five hundred samples are learnt a second, and an unreadable lesson is skipped', async () => {
  const { one, two, told, lessons } = openReplicas()
  for (let count = 0; count < 5000; count++) two.keeper.learn(sample)
  await two.leave()
  lessons.push('no lesson')
  await one.fold()
  expect(told.filter((line) => line.startsWith('one learns'))).toHaveLength(500)
  expect(told.at(-1)).toBe('one logs {}')
})

test('only the poller, or a replica that gives up polling, saves the model', async () => {
  const { one, two, told, become } = openReplicas()
  const learnt = one.keeper.learnt()
  expect(await two.checkpoint.keep(learnt)).toEqual({ health: 'healthy', eventQueued: false })
  expect(told).toEqual([])
  await one.checkpoint.keep(learnt)
  // While a replica gives up the role, it does not count as the poller any more.
  become('nobody')
  await one.handOver()
  expect(told).toEqual(['one saves 0', 'one settles 0', 'one saves 0'])
})
