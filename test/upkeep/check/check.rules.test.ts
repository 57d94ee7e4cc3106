import { expect, test } from 'vitest'
import {
  inOrder,
  isRed,
  judgeBackups,
  judgeCertificate,
  judgeClock,
  judgeDisk,
  judgeOpenFiles,
  judgeRetention,
  ok,
} from '../../../src/upkeep/check/check.rules.ts'

const DAY_MS = 86_400_000
const MB = 1024 * 1024

test.each([
  [null, 'skipped', 'had no time'],
  [-4900, 'ok', 'to within 5 s'],
  [20_000, 'warning', '20 s behind'],
  [-20_000, 'warning', '20 s ahead of'],
  [61_000, 'failed', '61 s behind'],
  [-3_600_000, 'failed', '3600 s ahead of'],
] as const)('the check of a carrier’s clock that is %s ms ahead of ours is %s', (aheadMs, state, said) => {
  expect(judgeClock(aheadMs)).toEqual({ state, message: expect.stringContaining(said) })
})

test.each([
  [600 * MB, 'ok', '600 MB is free.'],
  [500 * MB, 'warning', '500 MB is free. Below 256 MB'],
  [200 * MB, 'failed', '200 MB is free, less than limits.freeSpaceMin (256 MB)'],
] as const)('the check of a disk with %s bytes free is %s', (freeBytes, state, said) => {
  expect(judgeDisk({ freeBytes, diskBytes: 4096 * MB }, 256 * MB)).toEqual({ state, message: expect.stringContaining(said) })
})

test('a limit of more than half of the disk is a warning', () => {
  const judge = (diskBytes: number, freeBytes = 300 * MB) => judgeDisk({ freeBytes, diskBytes: diskBytes * MB }, 100 * MB)
  expect(judge(200)).toMatchObject({ state: 'ok' })
  const hint = 'limits.freeSpaceMin (100 MB) is more than half of the disk (199 MB): lower it, or take a larger disk.'
  expect(judge(199)).toEqual({ state: 'warning', message: `300 MB is free. ${hint}` })
  expect(judge(199, 150 * MB)).toMatchObject({ state: 'warning', message: expect.stringContaining(hint) })
  expect(judge(199, 50 * MB)).toMatchObject({ state: 'failed', message: expect.stringContaining(hint) })
})

test.each([
  [30, 'ok', '30 more days'],
  [1, 'warning', '1 more day'],
  [0, 'failed', 'expired'],
  [-3, 'failed', 'expired'],
] as const)('the check of a certificate that is valid for %s more days is %s', (days, state, said) => {
  expect(judgeCertificate(10 * DAY_MS + days * DAY_MS, 10 * DAY_MS)).toEqual({ state, message: expect.stringContaining(said) })
})

test.each([
  [null, 'ok'],
  [10_000, 'ok'],
  [8000, 'warning'],
  [1024, 'failed'],
] as const)('with 4,096 connections per listener, a limit of %s open files is %s', (limit, state) => {
  expect(judgeOpenFiles(limit, 4096).state).toBe(state)
})

test.each([
  [{ directory: null }, 'warning', 'name backup.directory'],
  [{ unreadable: 'EACCES' }, 'failed', 'cannot be read: EACCES'],
  [{ failing: { reason: 'the disk is full' } }, 'failed', 'the disk is full'],
  [{ madeAtMs: [] }, 'warning', 'No backup was made yet'],
  [{ madeAtMs: [98 * DAY_MS], cron: null }, 'warning', '2 days old. No further one is scheduled'],
  [{ madeAtMs: [99.5 * DAY_MS, 98 * DAY_MS] }, 'ok', '12 h old'],
  [{ madeAtMs: [99.5 * DAY_MS], ahead: ['scheduled-20990101T000000Z-ab'] }, 'warning', '1 name is of times to come'],
  [{ madeAtMs: [97 * DAY_MS, 96 * DAY_MS] }, 'failed', '3 days old. The schedule should have made another'],
  [{ madeAtMs: [90 * DAY_MS, 83 * DAY_MS] }, 'ok', '10 days old'],
] as const)('backups %j are %s', (more, state, said) => {
  const backups = { directory: '/backups', cron: '15 3 * * *', madeAtMs: [], ahead: [], failing: null, unreadable: null, ...more }
  expect(judgeBackups(backups, 100 * DAY_MS)).toEqual({ state, message: expect.stringContaining(said) })
})

const PASS = { startedAtMs: 0, removed: {}, held: {}, givenUp: {}, heldSinceMs: null, endpoints: [], isClockDoubted: false, endedAtMs: 0 }

test.each([
  [null, 'ok', 'raw 90d'],
  [{}, 'ok', 'raw 90d'],
  [{ endedAtMs: 92 * DAY_MS }, 'failed', 'No pass has ended for 192 h'],
  [{ isClockDoubted: true }, 'warning', 'clock was doubted'],
  [{ held: { overdue: 3, feed: 1 }, heldSinceMs: 60 * DAY_MS, startedAtMs: 100 * DAY_MS }, 'warning', '4 records are past their time'],
] as const)('the check of a last retention pass of %j is %s', (more, state, said) => {
  const last = more === null ? null : { ...PASS, endedAtMs: 100 * DAY_MS, ...more }
  expect(judgeRetention(last, 'raw 90d', 100 * DAY_MS)).toEqual({ state, message: expect.stringContaining(said) })
})

test('lines come in the fixed order of the checks, and only a failed line fails the whole check', () => {
  const lines = (['endpoint', 'store', 'config', 'store'] as const).map((name, at) => ({ name, subject: String(at), ...ok('') }))
  expect(inOrder(lines).map(({ subject }) => subject)).toEqual(['2', '1', '3', '0'])
  expect(isRed(lines)).toBe(false)
  expect(isRed([...lines, { name: 'disk', subject: null, state: 'failed', message: '' }])).toBe(true)
})
