import { expect, test } from 'vitest'
import {
  afterAnswer,
  afterNoAnswer,
  type CadenceFacts,
  type CadenceModel,
  type CarrierSilence,
  encodeSilence,
  nextPoll,
  noSilence,
  parseSilence,
  silentMs,
} from '../../../../src/core/domain/polling/cadence.ts'
import { emptyScanRate } from '../../../../src/core/domain/polling/scan-rate.ts'
import { cadence } from '../../../support/history/policy.ts'
import { DAY_MS, HOUR_MS } from '../../../support/runner/constants.ts'

const START = Date.UTC(2026, 2, 1, 12)

const facts = (fields: Partial<CadenceFacts>): CadenceFacts => ({
  parcelId: 1,
  latest: { status: 'TerminalArrived', atMs: START },
  entryCount: 1,
  watchedAtMs: START,
  activatedAtMs: START,
  checkedAtMs: START,
  failures: 0,
  unpollable: false,
  ...fields,
})
const model = (silence: CarrierSilence = noSilence): CadenceModel => ({
  pushHealth: 'unknown',
  pushLoss: 0,
  scanRate: emptyScanRate,
  silence,
})
const failedAt = (days: number, fields: Partial<CadenceFacts> = {}) =>
  facts({ failures: 400, checkedAtMs: START + days * DAY_MS, ...fields })

test('6.1: a parcel in transit whose polls all fail becomes stale like any other parcel', () => {
  expect(nextPoll(failedAt(29), model(), cadence).kind).toBe('at')
  expect(nextPoll(failedAt(40), model(), cadence)).toEqual({ kind: 'stopped', reason: 'stale' })
})

test('6.1: without answers, a new number ends as unknown, and a delivered parcel as delivered', () => {
  expect(nextPoll(failedAt(40, { latest: null, entryCount: 0 }), model(), cadence)).toEqual({ kind: 'stopped', reason: 'unknown' })
  const delivered = { status: 'DeliverySucceeded', atMs: START }
  expect(nextPoll(failedAt(40, { latest: delivered }), model(), cadence)).toEqual({ kind: 'stopped', reason: 'delivered' })
})

test('6.1: an app’s request restarts the polls of a stale parcel, although they fail', () => {
  expect(nextPoll(failedAt(40, { activatedAtMs: START + 40 * DAY_MS }), model(), cadence).kind).toBe('at')
})

test('6.1: no parcel becomes stale while the carrier answers nothing at all', () => {
  const lasting = afterNoAnswer(noSilence, START + 5 * DAY_MS)
  expect(nextPoll(failedAt(60), model(lasting), cadence).kind).toBe('at')
  const over = afterAnswer(lasting, START + 60 * DAY_MS)
  const answered = (days: number) => nextPoll(facts({ checkedAtMs: START + days * DAY_MS }), model(over), cadence)
  expect(answered(60).kind).toBe('at')
  expect(answered(84).kind).toBe('at')
  expect(answered(86)).toEqual({ kind: 'stopped', reason: 'stale' })
})

test('a silence of an hour or more lasts from the first unanswered poll to the next answer', () => {
  const silent = afterNoAnswer(afterNoAnswer(noSilence, START), START + HOUR_MS)
  expect(silent.sinceMs).toBe(START)
  expect(afterAnswer(silent, START + HOUR_MS - 1)).toEqual(noSilence)
  const over = afterAnswer(silent, START + 2 * HOUR_MS)
  expect(silentMs(over, START + HOUR_MS, START + 10 * HOUR_MS)).toBe(HOUR_MS)
  expect(silentMs(over, START + 3 * HOUR_MS, START + 10 * HOUR_MS)).toBe(0)
  expect(afterAnswer(over, START + 3 * HOUR_MS)).toBe(over)
})

test('a silence is saved when it is an hour old, and a damaged record of silences is ignored', () => {
  const silent = afterNoAnswer(noSilence, START)
  expect(parseSilence(encodeSilence(silent, START + HOUR_MS - 1))).toEqual(noSilence)
  expect(parseSilence(encodeSilence(silent, START + HOUR_MS))).toEqual(silent)
  for (const text of ['', '{}', '{"sinceMs":"x","past":[]}', '{"sinceMs":null,"past":[{}]}']) expect(parseSilence(text)).toBeNull()
})

test('only the latest silences are remembered', () => {
  let silence = noSilence
  for (let at = 0; at < 300; at++) silence = afterAnswer(afterNoAnswer(silence, at * DAY_MS), at * DAY_MS + 2 * HOUR_MS)
  expect([silence.past.length, silence.past[0]?.fromMs]).toEqual([100, 200 * DAY_MS])
})
