import { expect, test } from 'vitest'
import {
  freeScheduledName,
  isScheduled,
  namedAhead,
  nameProblem,
  outlived,
  parseBackupState,
  parseManifest,
  refuseUnmounted,
  scheduledName,
} from '../../../src/upkeep/backups/backup.rules.ts'
import { NOON } from '../../support/runner/constants.ts'

test.each(['a', 'before-upgrade', '2026.11.27_a', 'A'.repeat(80)])('%s is a valid name for a backup', (name) => {
  expect(nameProblem(name)).toBeNull()
})

test.each([
  ['', 'must be 1 to 80'],
  ['A'.repeat(81), 'must be 1 to 80'],
  ['.hidden', 'must be 1 to 80'],
  ['../up', 'must be 1 to 80'],
  ['a/b', 'must be 1 to 80'],
  ['a b', 'must be 1 to 80'],
  ['å', 'must be 1 to 80'],
  ['scheduled-mine', 'must not begin with "scheduled-"'],
  ['first.db', 'must not end in .db'],
  ['first.key', 'must not end in .db'],
])('"%s" is not a name for a backup: it %s', (name, problem) => {
  expect(nameProblem(name)).toContain(problem)
})

test('a folder that lies on an outer disk than at its last backup is refused', () => {
  const last = { directory: '/mnt/disk/relay', mountedAt: '/mnt/disk' }
  expect(() => refuseUnmounted(last, { directory: '/mnt/disk/relay', mountedAt: '/' })).toThrow('is not mounted now')
  expect(() => refuseUnmounted(last, last)).not.toThrow()
  expect(() => refuseUnmounted(last, { directory: '/mnt/disk/relay', mountedAt: '/mnt/disk/relay' })).not.toThrow()
  expect(() => refuseUnmounted(last, { directory: '/mnt/disk/here', mountedAt: '/' })).not.toThrow()
  expect(() => refuseUnmounted(null, { directory: '/mnt/disk/relay', mountedAt: '/' })).not.toThrow()
})

test('the name of a scheduled backup is its time in UTC, to the second, and its relay', () => {
  expect(scheduledName(Date.UTC(2026, 10, 27, 3, 15, 0, 250), 'abcdef0123456789')).toBe('scheduled-20261127T031500Z-abcdef01')
  expect(isScheduled('scheduled-20261127T031500Z-abcdef01')).toBe(true)
  expect(isScheduled('scheduled-mine')).toBe(false)
})

test('the newest scheduled backups are kept, and so is every ordered backup', () => {
  const days = ['03', '01', '02', '04'].map((day) => `scheduled-202611${day}T000000Z-abcdef01`)
  const nowMs = Date.UTC(2026, 10, 4)
  expect(outlived(['ordered', ...days, 'scheduled-mine'], 2, nowMs, days[3] ?? '')).toEqual([days[1], days[2]])
  expect(outlived(['ordered', ...days], 2, nowMs, 'ordered')).toEqual([days[1], days[2]])
  expect(outlived(days, 4, nowMs, days[3] ?? '')).toEqual([])
  expect(outlived(days, 1, nowMs, days[1] ?? ''), 'the clock went ahead while it was made').toEqual([days[2], days[0], days[3]])
})

test('a backup just made is kept, whatever is named for times to come, and these are found', () => {
  const ahead = Array.from({ length: 5 }, (_, nth) => scheduledName(Date.UTC(2027, 10, nth + 1), 'ab'))
  let names: readonly string[] = ahead
  for (let day = 1; day <= 9; day++) {
    const nowMs = Date.UTC(2026, 10, day, 3)
    const made = scheduledName(nowMs, 'ab')
    const gone = outlived([...names, made], 3, nowMs, made)
    names = [...names, made].filter((name) => !gone.includes(name))
    expect(names.slice(0, 5)).toEqual(ahead)
    expect(names.slice(5)).toEqual(
      [day - 2, day - 1, day].filter((one) => one > 0).map((one) => scheduledName(Date.UTC(2026, 10, one, 3), 'ab')),
    )
    expect(namedAhead(names, nowMs)).toEqual(ahead)
  }
})

test('a clock put back to the time of other backups neither doubles the last one nor fails', () => {
  const name = (second: number) => scheduledName(NOON + second * 1000, 'ab')
  const free = (seconds: readonly number[], last?: number) =>
    freeScheduledName(
      NOON,
      'ab',
      seconds.map((one) => ({ name: name(one) })),
      last === undefined ? undefined : name(last),
    )
  expect(free([])).toBe(name(0))
  expect(free([0], 0)).toBeNull()
  expect(free([0, 1], 3600)).toBe(name(2))
  expect(free([0, 1], 1)).toBe(name(2))
})

test('a manifest or state in another form is ignored', () => {
  const manifest = { name: 'a', relayId: '', madeAtMs: 1, version: '1', sequence: 3, keys: ['k'], rows: { inbox: 2 } }
  expect(parseManifest(JSON.stringify(manifest))).toEqual(manifest)
  for (const text of ['', '[]', '{"name":"a"}']) expect(parseManifest(text)).toBeNull()
  expect(parseBackupState('{"last":1}')).toEqual({ last: null, failing: null })
  expect(parseBackupState('{')).toEqual({ last: null, failing: null })
})
