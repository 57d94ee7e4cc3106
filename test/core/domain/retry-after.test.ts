import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { clampRetryAfterMs, parseRetryAfter } from '../../../src/core/domain/instant.ts'

const nowMs = Date.parse('2026-03-01T12:00:00Z')

describe('Retry-After', () => {
  test.each([
    ['5', 5_000],
    [' 120 ', 120_000],
    ['0', 1_000],
    ['3600', 3_600_000],
    ['1000000000', 3_600_000],
    ['9'.repeat(400), 3_600_000],
    ['Sun, 01 Mar 2026 12:00:10 GMT', 10_000],
    ['Sunday, 01-Mar-26 12:00:10 GMT', 10_000],
    ['Sun Mar  1 12:00:10 2026', 10_000],
    ['Sun, 01 Mar 2026 11:00:00 GMT', 1_000],
    ['Fri, 01 Jan 2100 00:00:00 GMT', 3_600_000],
  ])('P5: %s is read', (header, waitMs) => {
    expect(parseRetryAfter(header, nowMs)).toBe(waitMs)
  })

  test.each([null, '', '-1', '1.5', '1e9', 'soon', '5, 5', '2026-03-01T12:00:10Z', 'Sun, 99 Mar 2026 99:99:99 GMT'])(
    'P5: finds nothing readable in %s',
    (header) => {
      expect(parseRetryAfter(header, nowMs)).toBeNull()
    },
  )

  test('P5: every wait that is read from a header is between a second and an hour', () => {
    const headers = fc.oneof(
      fc.string(),
      fc.integer().map(String),
      fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
    )
    fc.assert(
      fc.property(headers, fc.integer(), (header, at) => {
        const waitMs = parseRetryAfter(header, at)
        expect(waitMs === null || (waitMs >= 1_000 && waitMs <= 3_600_000)).toBe(true)
      }),
    )
    expect(clampRetryAfterMs(Number.POSITIVE_INFINITY)).toBe(3_600_000)
  })
})
