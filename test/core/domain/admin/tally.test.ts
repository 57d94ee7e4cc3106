import { expect, test } from 'vitest'
import { LATENESS_CLASSES, latenessClass, spanStart, sumOf } from '../../../../src/core/domain/admin/tally.ts'

test('an hour begins at the full hour, and a day at midnight in UTC', () => {
  const last = Date.UTC(2026, 2, 29, 23, 59, 59, 999)
  expect([spanStart('hour', last), spanStart('day', last)]).toEqual([Date.UTC(2026, 2, 29, 23), Date.UTC(2026, 2, 29)])
  expect([spanStart('hour', last + 1), spanStart('day', last + 1)]).toEqual([Date.UTC(2026, 2, 30), Date.UTC(2026, 2, 30)])
})

test('a missed push belongs to the first class of lateness whose limit it does not exceed', () => {
  expect([0, 60_000, 60_001, 3_600_000, 86_400_000, 86_400_001].map(latenessClass)).toEqual(['1m', '1m', '5m', '1h', '1d', 'later'])
  expect(LATENESS_CLASSES).toEqual(['1m', '5m', '15m', '1h', '4h', '1d', 'later'])
})

test('tallies are added up name by name', () => {
  expect(sumOf([{ counts: { a: 1, b: 2 } }, { counts: { b: 3 } }])).toEqual({ a: 1, b: 5 })
})
