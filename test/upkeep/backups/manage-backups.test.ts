import { expect, test, vi } from 'vitest'
import type { Job } from '../../../src/core/domain/admin/job.ts'
import type { Actor } from '../../../src/core/domain/admin/operator-action.ts'
import type { BackupEnd, BackupFolder, BackupOrder, BackupProgress, PlacedBackup } from '../../../src/upkeep/backups/backup.rules.ts'
import { type ManageBackupsPorts, openManageBackups } from '../../../src/upkeep/backups/manage-backups.ts'
import { NOON } from '../../support/runner/constants.ts'

const ADMIN: Actor = { kind: 'app', name: 'admin', address: '127.0.0.1' }
const STEP: BackupProgress = { step: 'verifying', done: 1, total: 2 }

interface World {
  /** The results of the steps of the backup, in order. */
  readonly turns?: readonly (BackupProgress | Error)[]
  readonly directory?: string | null
  readonly isOnServer?: boolean
  readonly storeBytes?: number
  readonly trouble?: () => unknown
  readonly moves?: boolean
  readonly copy?: () => Promise<{ sequence: number }>
  readonly list?: BackupFolder['list']
  readonly unremoved?: string
}

function jobOf(jobId: number, task: Job['task']): Job {
  const times = { createdAtMs: NOON, startedAtMs: null, endedAtMs: null }
  return { jobId, task, state: 'waiting', by: 'admin', done: 0, cursor: null, failure: null, ...times }
}

async function openWorld(world: World = {}) {
  const ends: BackupEnd[] = []
  const events: unknown[] = []
  const logged: string[] = []
  const orders: BackupOrder[] = []
  const calls = { discarded: 0, closed: 0, stopped: 0, left: 0 }
  const wanted = { isWanted: true }
  let jobs = 0
  const turns = [...(world.turns ?? [STEP])]
  const folder: BackupFolder = {
    without: async () => [],
    list: world.list ?? (async () => []),
    async discard() {
      calls.discarded++
    },
    async openMaker(order) {
      orders.push(order)
      return {
        async advance() {
          const turn = turns.shift()
          if (turn instanceof Error) throw turn
          const made = { name: order.name, atMs: order.madeAtMs, bytes: 4096 }
          const placed: PlacedBackup = { made, unremoved: world.unremoved ?? null }
          return turn ?? placed
        },
        async close() {
          calls.closed++
        },
      }
    },
  }
  const ports: ManageBackupsPorts = {
    write: {
      relayId: async () => 'abcdef0123456789',
      startJob: async ({ task }) => jobOf(++jobs, task),
      noteProgress: async () => wanted,
      copyStore: world.copy ?? (async () => ({ sequence: 7 })),
      copyProgress: async () => ({ done: 1, total: 2 }),
      async stopCopy() {
        calls.stopped++
      },
      backupState: async () => ({ last: null, failing: null }),
      async endLeftBackups() {
        calls.left++
      },
    },
    reads: { listJobs: async () => (world.moves === true ? [jobOf(1, { kind: 'move', to: 'x' })] : []) },
    folder: world.isOnServer === true ? null : folder,
    settings: () => ({ directory: world.directory === undefined ? '/backups' : world.directory, cron: null, keep: 3 }),
    order: { copy: '/store/relay.db.backup', version: '1.2.3', keyFile: '/store/relay.db.key', keys: () => ['k1'] },
    room: () => ({ freeBytes: 1000, freeBytesMin: 100, storeBytes: world.storeBytes ?? 500 }),
    trouble: world.trouble ?? (() => null),
    clock: { now: () => NOON },
    pause: () => new Promise((resolve) => setImmediate(resolve)),
    unstored: {
      async write(what) {
        if (what.kind !== 'backup') throw new Error('a backup writes nothing else')
        ends.push(what.end)
        events.push(what.event)
      },
    },
    log: { info: () => undefined, warn: (_: unknown, text: string) => void logged.push(text), error: () => undefined },
  }
  return { manage: await openManageBackups(ports), ends, events, orders, calls, wanted, logged }
}

test('a backup is copied, checked and moved to its folder, and its result is stored', async () => {
  const { manage, ends, orders, calls } = await openWorld()
  const job = await manage.start({ name: 'first' }, ADMIN)
  expect(job.task).toEqual({ kind: 'backup', name: 'first' })
  await vi.waitFor(() => expect(ends).toHaveLength(1))
  const made = { name: 'first', atMs: NOON, bytes: 4096 }
  expect(ends).toEqual([{ jobId: 1, name: 'first', nowMs: NOON, made, failure: null }])
  expect(orders).toMatchObject([{ directory: '/backups', keep: 3, sequence: 7, keys: ['k1'], version: '1.2.3' }])
  expect(manage.state()).toEqual({ last: made, failing: null })
  expect([calls.closed, manage.failures()]).toEqual([1, 0])
})

test('a backup that a kill has interrupted is recorded as failed at the start', async () => {
  expect((await openWorld()).calls.left).toBe(1)
})

test.each([
  ['the store is on a server', { isOnServer: true }, 'pg_dump'],
  ['no folder is configured', { directory: null }, 'set backup.directory'],
  ['the store is being moved', { moves: true }, 'The store is being moved'],
  ['the folder cannot be read', { list: async () => Promise.reject(new Error('EIO: no answer')) }, 'EIO: no answer'],
  [
    'there is a backup of that name',
    { list: async () => [{ name: 'first', bytes: 1, madeAtMs: 1, hasKey: false }] },
    'There is a backup "first" already',
  ],
] as const)('an order is refused if %s', async (_, world, reason) => {
  const { manage, ends } = await openWorld(world)
  await expect(manage.start({ name: 'first' }, ADMIN)).rejects.toMatchObject({
    code: 'not_backed_up',
    message: expect.stringContaining(reason),
  })
  expect(ends).toEqual([])
})

test.each([[{}], [{ name: 7 }], [{ name: '../up' }], ['first'], [null]])('a backup order %j is refused', async (body) => {
  const { manage } = await openWorld()
  await expect(manage.start(body, ADMIN)).rejects.toMatchObject({ code: 'bad_request' })
})

test('only one backup is made at a time', async () => {
  const copying = Promise.withResolvers<{ sequence: number }>()
  const { manage, ends } = await openWorld({ copy: () => copying.promise })
  const { jobId } = await manage.start({ name: 'first' }, ADMIN)
  await expect(manage.start({ name: 'second' }, ADMIN)).rejects.toMatchObject({ code: 'not_backed_up' })
  await vi.waitFor(() => expect(manage.progressOf(jobId)).toEqual({ step: 'copying', done: 1, total: 2 }))
  copying.resolve({ sequence: 1 })
  await vi.waitFor(() => expect(ends).toHaveLength(1))
})

test('a scheduled backup that meets one under way is skipped: logged, counted, and no failure', async () => {
  const copying = Promise.withResolvers<{ sequence: number }>()
  const { manage, ends, logged } = await openWorld({ copy: () => copying.promise })
  const first = manage.scheduled()
  await manage.scheduled()
  expect([ends, manage.skipped(), manage.failures(), manage.state().failing]).toEqual([[], 1, 0, null])
  expect(logged).toEqual([expect.stringMatching(/^a scheduled backup was skipped/)])
  copying.resolve({ sequence: 1 })
  await first
  expect(ends).toMatchObject([{ jobId: 1, failure: null }])
  await manage.scheduled()
  expect([ends.length, manage.skipped()]).toEqual([2, 1])
})

test('a scheduled backup that meets a move of the store is skipped, and is no failure', async () => {
  const { manage, ends, logged, events } = await openWorld({ moves: true })
  await manage.scheduled()
  expect([ends, events, manage.skipped(), manage.failures(), manage.state().failing]).toEqual([[], [], 1, 0, null])
  expect(logged).toEqual(['a scheduled backup was skipped: the store is being moved'])
})

test.each([
  ['the copy fails', { copy: async () => Promise.reject(new Error('SQLITE_FULL: database or disk is full')) }, 'the disk is full'],
  ['the copy is damaged', { turns: [STEP, new Error('the table inbox is damaged: row 7')] }, 'the table inbox is damaged: row 7'],
  ['there is too little room beside the store', { storeBytes: 901 }, 'its disk has too little room'],
  ['the disk of the store fills', { trouble: () => 'short' }, 'became too full'],
])('if %s, the backup fails, operators are notified once, and the relay continues', async (_, world, reason) => {
  const { manage, ends, events, calls } = await openWorld(world)
  await manage.start({ name: 'first' }, ADMIN)
  await vi.waitFor(() => expect(ends).toHaveLength(1))
  expect(ends[0]).toMatchObject({ jobId: 1, made: null, failure: expect.stringContaining(reason) })
  expect([manage.failures(), manage.state().failing?.sinceMs]).toEqual([1, NOON])
  expect(events).toEqual([{ event: 'backup_failed', backup: 'first', reason: expect.stringContaining(reason) }])
  expect(calls.discarded).toBe(reason.includes('too little room') ? 0 : 1)
  await vi.waitFor(() => expect(manage.start({ name: 'second' }, ADMIN)).resolves.toMatchObject({ jobId: 2 }))
  await vi.waitFor(() => expect(events).toHaveLength(2))
  expect(events[1]).toBe(null)
})

test('a backup whose job is cancelled stops its copy, and does not count as failed', async () => {
  const copying = Promise.withResolvers<{ sequence: number }>()
  const world = await openWorld({ copy: () => copying.promise })
  await world.manage.start({ name: 'first' }, ADMIN)
  world.wanted.isWanted = false
  await vi.waitFor(() => expect(world.calls.stopped).toBeGreaterThan(0))
  copying.reject(new Error('the copy was stopped'))
  await vi.waitFor(() => expect(world.ends).toHaveLength(1))
  expect(world.ends[0]).toMatchObject({ made: null, failure: null })
  expect(world.manage.failures()).toBe(0)
})

test('a stop of the relay ends a backup and waits for its end', async () => {
  const copying = Promise.withResolvers<{ sequence: number }>()
  const { manage, ends } = await openWorld({ copy: () => copying.promise })
  await manage.start({ name: 'first' }, ADMIN)
  const stopped = manage.stop()
  copying.reject(new Error('the copy was stopped'))
  await stopped
  expect(ends).toMatchObject([{ made: null, failure: 'the relay is stopping' }])
})

test('a scheduled backup is named after its time, and counts as failed if it cannot begin', async () => {
  const good = await openWorld()
  await good.manage.scheduled()
  expect(good.ends).toMatchObject([{ jobId: 1, name: expect.stringMatching(/^scheduled-\d{8}T120000Z-abcdef01$/), failure: null }])
  const bad = await openWorld({ directory: null })
  await bad.manage.scheduled()
  expect(bad.ends).toMatchObject([{ jobId: null, made: null, failure: expect.stringContaining('set backup.directory') }])
})

test('the list says if the folder cannot be read or does not answer', async () => {
  const broken = await openWorld({ list: async () => Promise.reject(new Error('it is gone')) })
  expect(await broken.manage.list()).toMatchObject({ backups: [], unreadable: 'it is gone' })
  const silent = await openWorld({ list: () => new Promise(() => undefined) })
  expect(await silent.manage.list()).toMatchObject({ backups: [], unreadable: 'the folder does not answer' })
})
