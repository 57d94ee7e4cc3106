import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatWebhookTime, isWhole, parseInstant, parseTime } from '../../../src/core/domain/instant.ts'

test.each([
  ['2026-03-01T10:00:00Z', Date.UTC(2026, 2, 1, 10), true],
  ['2026-03-01T10:00:00.000Z', Date.UTC(2026, 2, 1, 10), true],
  ['2026-03-01T10:00:00.250Z', Date.UTC(2026, 2, 1, 10, 0, 0, 250), false],
  ['2024-02-29T23:59:59Z', Date.UTC(2024, 1, 29, 23, 59, 59), true],
  ['2026-11-25T10:15:40.6Z', Date.UTC(2026, 10, 25, 10, 15, 40, 600), false],
  ['2026-11-25T10:15:40.67Z', Date.UTC(2026, 10, 25, 10, 15, 40, 670), false],
  ['2026-11-25T10:15:40.0009Z', Date.UTC(2026, 10, 25, 10, 15, 40), true],
  ['2026-11-25T10:15:40.670999999Z', Date.UTC(2026, 10, 25, 10, 15, 40, 670), false],
  ['2026-11-25T10:15Z', Date.UTC(2026, 10, 25, 10, 15), true],
])('2.2: an instant is read, and recognised as a whole second or not: %s', (text, atMs, whole) => {
  const instant = parseInstant(text)
  expect(instant).toEqual({ text, atMs })
  expect(instant !== null && isWhole(instant)).toBe(whole)
})

test.each([
  '2024-02-30T00:00:00Z',
  '2023-02-29T00:00:00Z',
  '2026-03-01T24:00:00Z',
  '2026-03-01T23:59:60Z',
  '2026-03-01T10:00:00',
  '2026-03-01T10:00:00+00:00',
  '2026-03-01T10:00:00z',
  '2026-03-01t10:00:00Z',
  '2026-03-01 10:00:00Z',
  '2026-03-01T10:00:00.1234567890Z',
  '2026-03-01T10:00:00.Z',
  '2026-03-01T10:00.5Z',
  '2026-03-01T10:00:00,5Z',
  '2026-03-01T10Z',
  '2026-03-01T1000Z',
  '2026-02-30T10:00Z',
  '2026-03-01T24:00Z',
  '2026-03-01T10:60Z',
  '+275760-09-13T00:00:00Z',
  '1',
  1,
  null,
])('5.3: %j is refused as an instant, and not changed into another', (text) => {
  expect(parseInstant(text)).toBeNull()
})

test('2.2: digits beyond the millisecond are cut off in every year, never rounded', () => {
  const dates = fc.date({ min: new Date('0000-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
  fc.assert(
    fc.property(dates, fc.stringMatching(/^\d{1,6}$/), (date, more) => {
      const text = `${date.toISOString().slice(0, -1)}${more}Z`
      expect(parseInstant(text)).toEqual({ text, atMs: date.getTime() })
    }),
  )
})

test('an instant printed in the webhook’s form reads back as itself', () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date('0000-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true }),
      (date) => {
        expect(parseInstant(formatWebhookTime(date.getTime()))?.atMs).toBe(date.getTime())
      },
    ),
  )
})

test.each([
  ['2026-03-01T10:00:00+05:30', '2026-03-01T04:30:00.000Z'],
  ['2026-03-01T00:30:00+0200', '2026-02-28T22:30:00.000Z'],
  ['2026-03-31T23:30-01:00', '2026-04-01T00:30:00.000Z'],
  ['2028-02-29T10:00:00.9999Z', '2028-02-29T10:00:00.999Z'],
])('a typed time with an offset, %s, is the instant %s', (text, instant) => {
  expect(new Date(parseTime(text)).toISOString()).toBe(instant)
})

test.each(['2026-02-29T10:00:00Z', '2026-02-30T10:00:00+01:00', '2026-04-31T10:00Z', '2026-03-01T24:00:00Z', '2026-03-01T25:00Z', 'now'])(
  'a typed time that does not exist, %s, is no other one',
  (text) => {
    expect(parseTime(text)).toBeNaN()
  },
)
