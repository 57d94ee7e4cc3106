import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTallies } from '../../../src/console/tallies/tallies.ts'
import { spanStart, type TallyAddition } from '../../../src/core/domain/admin/tally.ts'
import type { Meter } from '../../../src/core/flow/ports.ts'
import { HOUR_MS, NOON } from '../../support/runner/constants.ts'

function start() {
  let nowMs = NOON
  let free = Number.POSITIVE_INFINITY
  let isDown: boolean | 'after the commit' = false
  let last = 0
  const stored: TallyAddition[] = []
  const told: unknown[] = []
  const tallies = createTallies({
    write: {
      addTallies: async ({ by, number, additions }) => {
        expect(by).toBe('relay')
        if (isDown === true) throw new Error('the store is down')
        if (number !== last) stored.push(...additions)
        last = number
        if (isDown !== false) throw new Error('the answer was lost')
      },
    },
    process: 'relay',
    freeBytes: () => free,
    zone: () => 'UTC',
    clock: { now: () => nowMs },
  })
  const silent: Meter = {
    pushReceived: (...call) => told.push(call),
    refusalExplained: (...call) => told.push(call),
    batchCommitted: (...call) => told.push(call),
    pollEnded: (...call) => told.push(call),
    missedPush: (...call) => told.push(call),
    deliveryAttempted: (...call) => told.push(call),
    merged: (...call) => told.push(call),
    rebuilt: (...call) => told.push(call),
    erased: (...call) => told.push(call),
    served: (...call) => told.push(call),
  }
  return {
    ...tallies,
    meter: tallies.over(silent),
    stored,
    told,
    set: (now: Partial<{ nowMs: number; free: number; isDown: boolean | 'after the commit' }>) => {
      nowMs = now.nowMs ?? nowMs
      free = now.free ?? free
      isDown = now.isDown ?? isDown
    },
  }
}

test('events reported to the meter are counted by kind and hour, and passed on to the next meter', async () => {
  const { meter, callMade, flush, stored, told, set } = start()
  meter.pushReceived('recorded', 0, 3)
  meter.pushReceived('duplicate', 0)
  meter.missedPush(61_000)
  meter.pollEnded('found')
  meter.deliveryAttempted({ id: '7', name: 'shop' }, 'rejected', 5)
  meter.served('hit')
  meter.served('unavailable')
  callMade('app:shop')
  set({ nowMs: NOON + HOUR_MS })
  meter.pushReceived('recorded', 0)
  await flush()
  expect(stored).toEqual([
    { fromMs: NOON, kind: 'pushes', counts: { recorded: 3, duplicate: 1 } },
    { fromMs: NOON, kind: 'missed', counts: { '5m': 1 } },
    { fromMs: NOON, kind: 'polls', counts: { found: 1 } },
    { fromMs: NOON, kind: 'attempts', counts: { failed: 1 } },
    { fromMs: NOON, kind: 'endpoint:7', counts: { failed: 1 } },
    { fromMs: NOON, kind: 'served', counts: { unavailable: 1 } },
    { fromMs: NOON, kind: 'calls', counts: { 'app:shop': 1 } },
    { fromMs: NOON + HOUR_MS, kind: 'pushes', counts: { recorded: 1 } },
  ])
  expect(told).toHaveLength(8)
})

test('counts are written only if they are new, and no count is written twice', async () => {
  const { meter, flush, stored } = start()
  await flush()
  expect(stored).toEqual([])
  meter.pollEnded('found')
  await flush()
  await flush()
  expect(stored).toHaveLength(1)
})

test('free space is recorded if the store is on a disk', async () => {
  const { flush, stored, set } = start()
  set({ free: 500 })
  await flush()
  expect(stored).toEqual([{ fromMs: NOON, kind: 'disk', counts: { free: 500 } }])
})

test('after a hundred names of a kind, all further names are counted together', async () => {
  const { callMade, flush, stored } = start()
  for (let app = 0; app < 150; app++) callMade(`app:${app}`)
  callMade('app:3')
  await flush()
  const counts = stored[0]?.counts ?? {}
  expect([Object.keys(counts).length, counts.others, counts['app:3']]).toEqual([101, 50, 2])
})

test('counts stored by a flush whose answer was lost are not stored again', async () => {
  const { meter, flush, stored, set } = start()
  meter.pollEnded('found')
  set({ isDown: 'after the commit' })
  await expect(flush()).rejects.toThrow('lost')
  meter.pollEnded('found')
  set({ isDown: false })
  await Promise.all([flush(), flush()])
  expect(stored.map(({ counts }) => counts)).toEqual([{ found: 1 }, { found: 1 }])
})

test('counts that a flush could not store are shown in the order in which they are stored', async () => {
  const { meter, flush, unflushed, stored, set } = start()
  meter.pollEnded('found')
  expect(unflushed()).toEqual([])
  set({ isDown: true })
  await expect(flush()).rejects.toThrow('down')
  meter.pollEnded('found')
  meter.pollEnded('found')
  const polls = (number: number, found: number) => ({
    by: 'relay',
    number,
    additions: [{ fromMs: NOON, kind: 'polls', counts: { found } }],
  })
  expect(unflushed()).toEqual([polls(1, 1), polls(2, 2)])
  set({ isDown: false })
  await flush()
  expect([stored.map(({ counts }) => counts), unflushed()]).toEqual([[{ found: 1 }, { found: 2 }], []])
})

const step = fc.oneof(
  fc.record({
    kind: fc.constant('count' as const),
    name: fc.constantFrom('recorded', 'duplicate', 'constructor', '__proto__'),
    count: fc.nat(5),
  }),
  fc.record({ kind: fc.constant('move' as const), byMs: fc.integer({ min: -2 * HOUR_MS, max: 3 * HOUR_MS }) }),
  fc.record({ kind: fc.constant('flush' as const), isDown: fc.constantFrom(false, true, 'after the commit' as const) }),
)

test('each count is stored once, in its hour, even if the clock jumps or the store refuses', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { meter, flush, stored, set } = start()
      const owed = new Map<string, number>()
      let nowMs = NOON
      for (const one of steps) {
        if (one.kind === 'count') {
          meter.pushReceived(one.name, null, one.count)
          const key = `${spanStart('hour', nowMs)} ${one.name}`
          owed.set(key, (owed.get(key) ?? 0) + one.count)
        } else if (one.kind === 'move') {
          nowMs += one.byMs
          set({ nowMs })
        } else {
          set({ isDown: one.isDown })
          await flush().catch(() => undefined)
        }
      }
      set({ isDown: false })
      await flush()
      const found = new Map<string, number>()
      for (const { fromMs, counts } of stored)
        for (const [name, count] of Object.entries(counts)) found.set(`${fromMs} ${name}`, (found.get(`${fromMs} ${name}`) ?? 0) + count)
      expect(found).toEqual(owed)
    }),
    { numRuns: 200 },
  )
})
