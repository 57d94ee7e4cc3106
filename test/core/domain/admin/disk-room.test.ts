import { expect, test } from 'vitest'
import { isDiskLow, refusesFromMs } from '../../../../src/core/domain/admin/disk-room.ts'

const HOUR = 3_600_000
const MB = 1_000_000
const NOW = 10 * HOUR
const room = (freeMb: number) => ({
  freeBytes: freeMb * MB,
  freeBytesMin: 100 * MB,
  totalBytes: 1000 * MB,
  storeBytes: MB,
  path: '/data/relay.db',
})
const hour = (fromMs: number, freeMb: number | null) => ({ fromMs, counts: freeMb === null ? {} : { free: freeMb * MB } })

test('a disk is low if less than twice the room that pushes need is free', () => {
  expect([isDiskLow(room(200)), isDiskLow(room(199))]).toEqual([false, true])
})

test('the pace of the last hours predicts when the disk is too full for pushes', () => {
  // 400 MB were used in the eight hours since the first hour ended, and 200 MB are left above the limit.
  expect(refusesFromMs(room(300), [hour(0, null), hour(HOUR, 700), hour(2 * HOUR, 100)], NOW)).toBe(NOW + 4 * HOUR)
})

test.each([
  ['nothing is known', []],
  ['its free space grows', [hour(0, 200)]],
  ['it has been filling up for only a quarter of an hour', [hour(NOW - 1.25 * HOUR, 900)]],
  ['its free space would last for years', [hour(0, 300.001)]],
])('no end of pushes is predicted for a disk if %s', (_what, hours) => {
  expect(refusesFromMs(room(300), hours, NOW)).toBeNull()
})
