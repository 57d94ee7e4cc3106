import { expect, test } from 'vitest'
import { createReplicaChanges } from '../../../src/server/replicas/membership.ts'
import type { Watermarks } from '../../../src/server/replicas/replica-lease.ts'

const BEFORE: Watermarks = { server: 1, sequence: 10, endpoints: 10, roles: 10, orders: 10, isMoving: false }
const ALL = ['setBack', 'committed', 'reordered', 'replicasChanged']

/** Makes a check that finds the next of these watermarks each time, or fails if the next is an error. */
function looks(found: (Watermarks | Error)[], share: (seen: Watermarks | null) => Promise<void> = async () => undefined) {
  const calls: string[] = []
  const note = (what: string) => () => void calls.push(what)
  const look = createReplicaChanges({
    table: {
      async look() {
        const next = found.shift()
        if (next === undefined || next instanceof Error) throw next ?? new Error('nothing is left to be found')
        return next
      },
    },
    membership: { share },
    listener: {
      committed: note('committed'),
      reordered: note('reordered'),
      replicasChanged: note('replicasChanged'),
      moving: note('moving'),
      setBack: note('setBack'),
    },
  })
  return { look, calls }
}

/** Returns the listener's calls when a check finds `seen` after `BEFORE`, or as the first check. */
async function callsAfter(seen: Partial<Watermarks>, isFirst = false): Promise<readonly string[]> {
  const { look, calls } = looks([...(isFirst ? [] : [BEFORE]), { ...BEFORE, ...seen }])
  if (!isFirst) await look()
  await look()
  return calls
}

test('a watermark that rises calls its listener, but the first check only reports a move', async () => {
  expect(await callsAfter({})).toEqual([])
  expect(await callsAfter({ sequence: 11 })).toEqual(['committed'])
  expect([await callsAfter({ orders: 11 }), await callsAfter({ endpoints: 11 })]).toEqual([['reordered'], ['reordered']])
  expect(await callsAfter({ roles: 11 })).toEqual(['replicasChanged'])
  expect([await callsAfter({ isMoving: true }), await callsAfter({ isMoving: true, sequence: 11 }, true)]).toEqual([['moving'], ['moving']])
})

test.each([
  ['another server, even with higher numbers', { server: 2, sequence: 12 }],
  ['a lower sequence', { sequence: 9 }],
  ['a lower number of orders', { orders: 9 }],
  ['a lower number of endpoints', { endpoints: 9 }],
  ['a lower number of roles', { roles: 9 }],
])('S18: %s means that commits may be lost, so everything is read again', async (_, seen) => {
  expect(await callsAfter(seen)).toEqual(ALL)
})

test('a change while the store fails is found by the next check that succeeds', async () => {
  const { look, calls } = looks([BEFORE, new Error('gone'), { ...BEFORE, sequence: 12 }])
  for (let time = 0; time < 3; time++) await look()
  expect(calls).toEqual(['committed'])
})

test('a check does not wait until roles are shared, and only one sharing runs at a time', async () => {
  const sharing = Promise.withResolvers<void>()
  const shared: (Watermarks | null)[] = []
  const { look } = looks([BEFORE, BEFORE, BEFORE], async (seen) => {
    shared.push(seen)
    await sharing.promise
  })
  await look()
  await look()
  expect(shared).toHaveLength(1)
  sharing.resolve()
  await sharing.promise
  await look()
  expect(shared).toHaveLength(2)
})
