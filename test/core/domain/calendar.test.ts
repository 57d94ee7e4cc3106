import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { beginOfDayMs, dayIn, wallClockMs } from '../../../src/core/domain/calendar.ts'

test.each([
  ['UTC', '2026-03-01T23:59:59Z', '2026-03-01T23:59:59Z'],
  ['Europe/Stockholm', '2026-03-29T00:59:59Z', '2026-03-29T01:59:59Z'],
  ['Europe/Stockholm', '2026-03-29T01:00:00Z', '2026-03-29T03:00:00Z'],
  ['Asia/Kathmandu', '2026-03-01T18:15:00Z', '2026-03-02T00:00:00Z'],
  ['America/New_York', '2026-01-01T04:59:59Z', '2025-12-31T23:59:59Z'],
  ['Europe/Stockholm', '0000-01-01T00:00:00Z', '0000-01-01T00:00:00Z'],
  ['Europe/Stockholm', '9999-12-31T12:00:00Z', '9999-12-31T13:00:00Z'],
])('a clock in %s shows at %s %s, and that date is the day', (zone, at, shown) => {
  expect(wallClockMs(zone, Date.parse(at))).toBe(Date.parse(shown))
  expect(dayIn(zone, Date.parse(at))).toBe(Date.parse(`${shown.slice(0, 10)}T00:00:00Z`))
})

const ZONES = ['UTC', 'Europe/Stockholm', 'America/St_Johns', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'Pacific/Apia', 'Africa/Casablanca']

test('at any time since 1973 a clock shows what the platform says of that very second', () => {
  const zones = fc.constantFrom(...ZONES)
  const times = fc.array(fc.integer({ min: Date.UTC(1973), max: Date.UTC(2100) }), { maxLength: 20 })
  fc.assert(
    fc.property(zones, times, (timeZone, all) => {
      const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
      for (const atMs of all) {
        const clock = new Date(wallClockMs(timeZone, atMs)).toISOString()
        expect(`${clock.slice(0, 10)} ${clock.slice(11, 19)}`).toBe(format.format(atMs))
      }
    }),
  )
})

test('a day begins at its first instant, also where clocks skip midnight', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...ZONES, 'Africa/Cairo', 'Pacific/Kiritimati', 'Pacific/Pago_Pago'),
      fc.integer({ min: 20_000, max: 40_000 }),
      (zone, nth) => {
        const begin = beginOfDayMs(zone, nth * 86_400_000)
        expect([dayIn(zone, begin) >= nth * 86_400_000, dayIn(zone, begin - 1) < nth * 86_400_000]).toEqual([true, true])
      },
    ),
  )
})

test('zones that are asked for in turns, as days and quiet hours are, are each prepared once', () => {
  const made = vi.spyOn(Intl, 'DateTimeFormat')
  for (let turn = 0; turn < 10; turn++) for (const zone of ['Asia/Tokyo', 'America/Lima']) wallClockMs(zone, Date.UTC(2026, 10, 30))
  expect(made).toHaveBeenCalledTimes(2)
  made.mockRestore()
})
