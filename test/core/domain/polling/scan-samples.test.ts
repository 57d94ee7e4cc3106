import { expect, test } from 'vitest'
import { deriveEntries } from '../../../../src/core/domain/history/history.ts'
import { newParcel } from '../../../../src/core/domain/history/parcel-state.ts'
import { mergeSightings, sightingsOf } from '../../../../src/core/domain/history/sightings.ts'
import { cadenceFactsOf, scheduleNextPoll } from '../../../../src/core/domain/polling/poll.ts'
import { emptyScanRate, learnScanRate, type ScanSample, scanSamplesOf } from '../../../../src/core/domain/polling/scan-rate.ts'
import { aPoll } from '../../../support/history/builders.ts'
import { cadence } from '../../../support/history/policy.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'

const CREATED = { status: 'Created', detailedStatus: 'Created' }
const iso = (atMs: number) => new Date(atMs).toISOString()

test('6.1, B11: an entry dated two hours ahead ends the wait when the relay learns of it', () => {
  const poll = aPoll({
    askedAtMs: NOON,
    statuses: [{ eventTimestamp: iso(NOON + 2 * HOUR_MS) }, { ...CREATED, eventTimestamp: iso(NOON - HOUR_MS) }],
  })
  let sequence = 7
  const entries = deriveEntries(mergeSightings([], sightingsOf(poll), () => sequence++, null).kept)
  const before = { latest: null, entryCount: 0, checkedAtMs: null, lastSeenAtMs: null }
  const samples = scanSamplesOf(before, poll, entries, { nowMs: NOON, knownTo: 6 })
  const waits = samples.filter((sample) => sample.kind === 'wait')
  expect(waits).toMatchObject([
    { status: 'Created', fromMs: NOON - HOUR_MS, toMs: NOON, scanned: true },
    { status: 'TerminalArrived', fromMs: NOON, toMs: NOON, scanned: false },
  ])
})

test('6.1, B11: an entry dated ahead adds its sample of the kind "place" once, not at every poll', () => {
  const poll = aPoll({ askedAtMs: NOON, statuses: [{ eventTimestamp: iso(NOON + 2 * HOUR_MS) }] })
  let sequence = 7
  const entries = deriveEntries(mergeSightings([], sightingsOf(poll), () => sequence++, null).kept)
  const places = (checkedAtMs: number | null, knownTo: number) =>
    scanSamplesOf({ latest: null, entryCount: 0, checkedAtMs, lastSeenAtMs: checkedAtMs }, poll, entries, { nowMs: NOON, knownTo }).filter(
      ({ kind }) => kind === 'place',
    ).length
  expect([places(null, 6), places(NOON - HOUR_MS, 7)]).toEqual([1, 0])
})

test('6.1, B11: after a scan rate is learnt, an entry dated ten years ahead does not end polling', () => {
  const waits = Array.from({ length: 400 }, (_, at): ScanSample => {
    const fromMs = NOON - (at % 14) * 12 * HOUR_MS
    return { kind: 'wait', status: 'Created', entryCount: 1, fromMs, toMs: fromMs + 9 * HOUR_MS, scanned: true }
  })
  const model = { pushHealth: 'lossy', pushLoss: 0.05, scanRate: learnScanRate(emptyScanRate, waits, NOON) } as const
  const parcel = { ...newParcel(7, NOON), watchedAtMs: NOON, entryCount: 1, checkedAtMs: NOON, lastSeenAtMs: NOON }
  const next = (latest: { readonly status: string; readonly atMs: number; readonly learntAtMs?: number }) =>
    scheduleNextPoll({ ...parcel, latest }, NOON, model, cadence, NOON).nextPollAtMs
  const right = next({ status: 'Created', atMs: NOON })
  expect(right).toBeLessThan(NOON + DAY_MS)
  expect(next({ status: 'Created', atMs: NOON + 3650 * DAY_MS, learntAtMs: NOON })).toBe(right)
})

test('P13: after the clock was put back, the cadence treats later times as now', () => {
  const laterMs = NOON + DAY_MS
  const parcel = { ...newParcel(7, laterMs), watchedAtMs: laterMs, checkedAtMs: laterMs, latest: { status: 'Created', atMs: laterMs } }
  expect(cadenceFactsOf(parcel, false, NOON)).toMatchObject({
    activatedAtMs: NOON,
    watchedAtMs: NOON,
    checkedAtMs: NOON,
    latest: { status: 'Created', atMs: NOON },
  })
})
