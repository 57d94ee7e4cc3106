import { expect, test } from 'vitest'
import { anomaliesOf } from '../../../../src/core/domain/history/recording.ts'
import { aPoll, aPush, type PolledEntry } from '../../../support/history/builders.ts'

const atMs = Date.UTC(2026, 2, 1, 10)
const push = aPush({ eventTime: '2026-03-01T10:00:00.000Z' })

test('an event more than five minutes ahead of the clock is an anomaly', () => {
  expect(anomaliesOf(push, 1, atMs - 300_001)).toEqual(['event_clock_ahead'])
  expect([anomaliesOf(push, 1, atMs - 300_000), anomaliesOf(push, 9, atMs + 1)]).toEqual([[], []])
})

test('an answer that lists fewer entries than are known is an anomaly', () => {
  const poll = aPoll({ statuses: [{}, { status: 'Created' }] })
  expect([anomaliesOf(poll, 3, 0), anomaliesOf(poll, 2, 0)]).toEqual([['upstream_regressed'], []])
})

test('unreadable items of an answer are an anomaly, however few entries it lists', () => {
  expect(anomaliesOf(aPoll({ statuses: [{}, { eventTimestamp: 'never' }] }), 9, 0)).toEqual(['upstream_flawed'])
})

test('4.1: texts that could not be stored are an anomaly in addition to any other', () => {
  const noTag = aPush({ texts: { 'not a tag': 'Arrived' }, eventTime: '2026-03-01T10:00:00.000Z' })
  expect(anomaliesOf(noTag, 1, atMs)).toEqual(['text_dropped'])
  expect(anomaliesOf(noTag, 1, atMs - 300_001)).toEqual(['event_clock_ahead', 'text_dropped'])
  expect(anomaliesOf(aPoll({ statuses: [{ consumerDescription: 7 }] as unknown as PolledEntry[] }), 1, 0)).toEqual(['text_dropped'])
})
