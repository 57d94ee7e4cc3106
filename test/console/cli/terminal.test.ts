import { expect, test } from 'vitest'
import { createFollowedDeliveries } from '../../../src/console/cli/tail.command.ts'
import { readTimeOption, until } from '../../../src/console/cli/terminal.ts'

const listOf = (ids: readonly number[], next: string | null) => ({
  deliveries: ids.map((id) => ({ id: String(id), state: 'queued', attemptCount: 0 })),
  next,
})

test('a check that is due is shown as "now", and a later check as the time until it is due', () => {
  const at = new Date(10_000).toISOString()
  expect([10_000, 9_999, 8_000].map((nowMs) => until(at, nowMs))).toEqual(['now', 'in less than a second', 'in 2 s'])
})

test('followed deliveries may lack some if a list shares no row with the list before it', () => {
  const followed = createFollowedDeliveries({ firstMax: 2 })
  expect(followed.look(listOf([3, 2, 1], 'more'))).toMatchObject({ changed: [{ id: '2' }, { id: '3' }], mayLackSome: false })
  expect(followed.look(listOf([5, 4, 3], 'more'))).toMatchObject({ changed: [{ id: '4' }, { id: '5' }], mayLackSome: false })
  expect(followed.look(listOf([10, 9, 8], 'more'))).toMatchObject({ changed: [{}, {}, {}], mayLackSome: true })
  expect(createFollowedDeliveries({ firstMax: 2 }).look(listOf([1], null)).mayLackSome).toBe(false)
})

test('an option for a time refuses a day or an hour that does not exist', () => {
  expect(readTimeOption('2026-03-01T10:00:00+01:00')).toBe('2026-03-01T09:00:00.000Z')
  for (const none of ['2026-02-30T10:00:00Z', '2026-02-28T24:00:00Z']) expect(() => readTimeOption(none)).toThrow('must be a time such as')
})
