import { expect, test } from 'vitest'
import { createLostCommits, type ReplicaStanding, type Timeline } from '../../../src/server/postgres/admin/lost-commits.ts'

const FOUND: ReplicaStanding = { server: 1, sequence: 10, started_at_ms: 100, seen_at_ms: 5000 }
const REPLICA = 7

/** Returns for each finding, in turn, whether it shows that the server has lost commits. */
async function askedOf(...found: readonly (Partial<ReplicaStanding> & { readonly timeline?: Timeline })[]): Promise<readonly boolean[]> {
  const lostCommits = createLostCommits()
  const answers: boolean[] = []
  for (const { timeline = 'one', ...one } of [{}, ...found]) {
    answers.push(await lostCommits.asking(REPLICA)({ ...FOUND, ...one }, async () => timeline))
  }
  return answers.slice(1)
}

test('S18: a server that was only restarted has lost nothing', async () => {
  expect(await askedOf({ server: 2 }, { server: 3, sequence: 11, seen_at_ms: 6000 })).toEqual([false, false])
})

test.each([
  ['writes another timeline', { server: 2, timeline: 'two' }],
  ['cannot say which timeline it writes', { server: 2, timeline: null }],
  ['has a lower counter', { server: 2, sequence: 9 }],
  ['does not know the last renewal of the replica', { server: 2, sequence: 50, seen_at_ms: 4000 }],
  ['has given the number of the replica to another', { server: 2, started_at_ms: 200 }],
])('S18: a restarted server that %s has lost commits, whatever its later answers say', async (_, found) => {
  expect(await askedOf(found, { server: 2 }, {})).toEqual([true, true, true])
})

test('after a transaction has found a loss, a renewal finds it too', async () => {
  const lostCommits = createLostCommits()
  const timeline = async () => 'one'
  expect(await lostCommits.asking(REPLICA)({ ...FOUND, seen_at_ms: 4000, now_ms: 5000 }, timeline)).toBe(false)
  expect(await lostCommits.asking(REPLICA)({ ...FOUND, seen_at_ms: 5000 }, timeline)).toBe(false)
  const renewal = lostCommits.asking(REPLICA)
  expect(await lostCommits.asking(REPLICA)({ ...FOUND, server: 2, seen_at_ms: 4500 }, timeline)).toBe(true)
  expect(await renewal({ ...FOUND, server: 2, seen_at_ms: 4500, now_ms: 9000 }, timeline)).toBe(true)
  expect(await lostCommits.asking(REPLICA + 1)({ ...FOUND, server: 2 }, timeline)).toBe(false)
})

test('a late answer to an earlier request may show an older state, which is not a loss', async () => {
  const lostCommits = createLostCommits()
  const timeline = async () => 'one'
  await lostCommits.asking(REPLICA)(FOUND, timeline)
  const late = lostCommits.asking(REPLICA)
  expect(await lostCommits.asking(REPLICA)({ ...FOUND, sequence: 20 }, timeline)).toBe(false)
  expect(await late({ ...FOUND, sequence: 15 }, timeline)).toBe(false)
  expect(await lostCommits.asking(REPLICA)({ ...FOUND, sequence: 19 }, timeline)).toBe(true)
})
