import { expect, test } from 'vitest'
import type { Replica } from '../../../src/core/domain/admin/replica.ts'
import { nameReplica } from '../../../src/core/wiring/replica-name.ts'
import { removePredecessors } from '../../../src/server/replicas/replicas.ts'

const NOW_MS = 100_000
/** How long this process has run. */
const RUNS_MS = 10_000
const SELF = { host: 'here', pid: 7 }

/** Returns the ids of the replicas that are removed, while processes 7 and 8 run on this machine. */
async function removedOf(...replicas: readonly (readonly [host: string, pid: number, startedAtMs: number])[]) {
  const removed: number[] = []
  const list = replicas.map(([host, pid, startedAtMs], at): Replica => {
    const name = nameReplica({ host, pid })
    return {
      id: at + 1,
      name,
      version: '1',
      configFingerprint: 'a',
      atRestKeys: [],
      startedAtMs,
      lastSeenAtMs: NOW_MS,
      roles: [],
      concerns: [],
    }
  })
  const table = { list: async () => list, remove: async (id: number) => void removed.push(id) }
  const clock = { now: () => NOW_MS, monotonic: () => RUNS_MS }
  await removePredecessors({ table, clock, isRunning: (pid) => pid === 7 || pid === 8 }, SELF)
  return removed
}

test('a replica of this machine is removed if its process is gone', async () => {
  expect(await removedOf(['here', 6, 1000], ['here', 8, 1000])).toEqual([1])
})

test('a replica with the pid of this process is removed if it started before this process', async () => {
  expect(await removedOf(['here', 7, NOW_MS - RUNS_MS - 1], ['here', 7, NOW_MS - RUNS_MS])).toEqual([1])
})

test('a replica of another machine stays, even if a process here has its pid', async () => {
  expect(await removedOf(['there', 6, 1000], ['there', 7, 1000])).toEqual([])
})
