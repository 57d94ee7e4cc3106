import { expect, test } from 'vitest'
import { charactersOf } from '../../../src/console/portal/html.ts'
import { sentenceOnPage } from '../../../src/console/portal/parts.ts'
import { readTime } from '../../../src/console/portal/times.ts'

const NOW_MS = Date.UTC(2026, 10, 25, 18)

/** Returns the sentence as the page shows it, without tags. */
function shown(sentence: string): string {
  return charactersOf(sentenceOnPage(sentence, NOW_MS)).replaceAll(/<[^>]*>/g, '')
}

test('two times of the same minute in a sentence are shown with seconds, so that they differ', () => {
  expect(shown('355 requests from 2026-11-25T17:16:04Z until 2026-11-25T17:16:51Z.')).toBe(
    '355 requests from 17:16:04 UTC until 17:16:51 UTC.',
  )
  expect(shown('From 2026-11-24T17:16:04Z until 2026-11-24T17:16:51Z, then 2026-11-25T17:20:05Z.')).toBe(
    'From 24 Nov 17:16:04 UTC until 24 Nov 17:16:51 UTC, then 17:20 UTC.',
  )
})

test('times of different minutes, and the same time twice, are shown to the minute', () => {
  expect(shown('From 2026-11-25T17:16:59Z until 2026-11-25T17:17:01Z.')).toBe('From 17:16 UTC until 17:17 UTC.')
  expect(shown('At 2026-11-25T17:16:04Z, and so since 2026-11-25T17:16:04Z.')).toBe('At 17:16 UTC, and so since 17:16 UTC.')
})

test('a field for a time refuses a day or an hour that does not exist', () => {
  expect(readTime('2026-03-01T10:00', 'From')).toBe(Date.UTC(2026, 2, 1, 10))
  for (const none of ['2026-02-30T10:00', '2026-02-28T24:00']) expect(() => readTime(none, 'From')).toThrow('From must be a time')
})
