import { expect, test } from 'vitest'
import { anomalyOf } from '../../../src/domain/ingest/anomaly.ts'
import { aPoll, aPush } from '../../support/builders.ts'

const atMs = Date.UTC(2026, 2, 1, 10)
const push = aPush({ eventTime: '2026-03-01T10:00:00.000Z' })

test('an event more than five minutes ahead of our clock is remarked on, a nearer or older one is not', () => {
  expect(anomalyOf(push, 1, atMs - 300_001)).toBe('event_clock_ahead')
  expect([anomalyOf(push, 1, atMs - 300_000), anomalyOf(push, 9, atMs + 1)]).toEqual([null, null])
})

test('an answer that lists fewer entries than are known is remarked on, whenever they were', () => {
  const poll = aPoll({ statuses: [{}, { status: 'Created' }] })
  expect([anomalyOf(poll, 3, 0), anomalyOf(poll, 2, 0)]).toEqual(['upstream_regressed', null])
})

test('an answer with items that could not be read is remarked on as such, however few it lists', () => {
  expect(anomalyOf(aPoll({ statuses: [{}, { eventTimestamp: 'never' }] }), 9, 0)).toBe('upstream_flawed')
})
