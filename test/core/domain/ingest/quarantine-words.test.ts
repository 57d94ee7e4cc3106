import { expect, test } from 'vitest'
import { QUARANTINE_REASONS } from '../../../../src/core/domain/history/observation.ts'
import { REASON_CHOICES, reasonSentence, reasonText } from '../../../../src/core/domain/ingest/fault-in-body.ts'

test('every reason of quarantine has words of its own, which the filter offers', () => {
  expect(REASON_CHOICES.map(([reason]) => reason)).toEqual([...QUARANTINE_REASONS])
  expect(new Set(QUARANTINE_REASONS.map(reasonText)).size).toBe(QUARANTINE_REASONS.length)
  expect([reasonText('event_time'), reasonSentence('event_time')]).toEqual([
    'eventTime is not a UTC time',
    'Its eventTime is not a time in UTC, such as 2026-03-01T10:00:00.250Z.',
  ])
})

test('a reason of another version of the relay is shown by its code', () => {
  expect([reasonText('too_odd'), reasonSentence('too_odd')]).toEqual(['too odd', 'The reason is too_odd.'])
})
