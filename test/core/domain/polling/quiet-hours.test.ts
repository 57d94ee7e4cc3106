import { expect, test } from 'vitest'
import { isQuiet } from '../../../../src/core/domain/polling/poll.ts'

const night = { from: '22:00', to: '05:00', zone: 'Europe/Stockholm' }

test.each([
  ['2026-01-10T20:59:00Z', false],
  ['2026-01-10T21:00:00Z', true],
  ['2026-01-11T03:59:59Z', true],
  ['2026-01-11T04:00:00Z', false],
  ['2026-07-10T19:59:59Z', false],
  ['2026-07-10T20:00:00Z', true],
])('quiet hours may cross midnight, and follow their time zone and summer time: %s', (text, quiet) => {
  expect(isQuiet(Date.parse(text), night)).toBe(quiet)
})

test('quiet hours within one day include their beginning and not their end', () => {
  const noon = { from: '12:00', to: '13:00', zone: 'UTC' }
  expect([11, 12, 13].map((hour) => isQuiet(Date.UTC(2026, 0, 1, hour), noon))).toEqual([false, true, false])
})
