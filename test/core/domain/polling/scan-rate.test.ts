import { expect, test } from 'vitest'
import { type CadenceFacts, type CadenceModel, nextPoll } from '../../../../src/core/domain/polling/cadence.ts'
import {
  emptyScanRate,
  hourlyRatesOf,
  hourOfWeek,
  learnScanRate,
  missingBefore,
  type ScanRate,
  type ScanSample,
} from '../../../../src/core/domain/polling/scan-rate.ts'
import { cadence } from '../../../support/history/policy.ts'
import { DAY_MS, HOUR_MS } from '../../../support/runner/constants.ts'

const MONDAY = Date.UTC(2026, 2, 2)
const at = (day: number, hour: number) => MONDAY + day * DAY_MS + hour * HOUR_MS

/** Parcels that are handed in all day and scanned between six and eight in the evening, on every day of a week. */
const evenings: readonly ScanSample[] = Array.from({ length: 700 }, (_, parcel): ScanSample => {
  const day = parcel % 7
  const fromMs = at(day, 8 + (parcel % 9))
  return { kind: 'wait', status: 'Created', entryCount: 1, fromMs, toMs: at(day, 18 + (parcel % 20) / 10), scanned: true }
})
const learnt = learnScanRate(emptyScanRate, evenings, at(7, 0))
/** Scans that are equally likely at any hour, after a wait of nine hours on average. */
const steady = learnScanRate(
  emptyScanRate,
  Array.from({ length: 4000 }, (_, parcel): ScanSample => {
    const fromMs = at(parcel % 7, (parcel * 7) % 24)
    const waitedMs = -9 * HOUR_MS * Math.log((parcel + 0.5) / 4000)
    return { kind: 'wait', status: 'Created', entryCount: 1, fromMs, toMs: fromMs + waitedMs, scanned: true }
  }),
  at(7, 0),
)

function nextAt(scanRate: ScanRate, change: Partial<CadenceFacts>, hourlyRates: Partial<CadenceModel> = {}): number {
  const facts = {
    parcelId: 0,
    entryCount: 1,
    watchedAtMs: null,
    activatedAtMs: at(8, 10),
    checkedAtMs: null,
    failures: 0,
    unpollable: false,
  }
  const latest = { status: 'Created', atMs: at(8, 10) }
  const next = nextPoll({ ...facts, latest, ...change }, { pushHealth: 'lossy', pushLoss: 0.05, scanRate, ...hourlyRates }, cadence)
  return next.kind === 'at' ? next.atMs : Number.NaN
}
const hourOf = (atMs: number) => (atMs - at(8, 0)) / HOUR_MS

test('hours of the week count from Monday', () => {
  expect(hourOfWeek(MONDAY)).toBe(0)
  expect(hourOfWeek(at(6, 23.5))).toBe(167)
  expect(hourOfWeek(-1)).toBe(71)
})

test('scans are expected at the hours when they came, and hardly at others', () => {
  const rates = hourlyRatesOf(learnt, 'Created', 1)?.rates ?? []
  expect(rates[hourOfWeek(at(8, 18))]).toBeGreaterThan(0.5)
  expect(rates[hourOfWeek(at(8, 12))]).toBeLessThan(0.02)
})

test('a status with few samples has no learnt rate', () => {
  expect(hourlyRatesOf(learnScanRate(emptyScanRate, evenings.slice(0, 20), at(7, 0)), 'Created', 1)).toBeNull()
  expect(hourlyRatesOf(learnt, 'constructor', 1)).toBeNull()
})

test('a poll comes in the hours in which scans come, not before them', () => {
  const hour = hourOf(nextAt(learnt, {}))
  expect(hour).toBeGreaterThan(18)
  expect(hour).toBeLessThan(19)
})

test('if scans have no rhythm, the interval is about the configured one', () => {
  const hours = hourOf(nextAt(steady, { checkedAtMs: at(8, 10) })) - 10
  expect(hours).toBeGreaterThan(1.6)
  expect(hours).toBeLessThan(2.4)
})

test('while pushes are healthy, a poll comes after the hour in which a push was likely', () => {
  const hour = hourOf(nextAt(learnt, {}, { pushHealth: 'healthy' }))
  expect(hour).toBeGreaterThan(19)
  expect(hour).toBeLessThan(21)
})

test('a poll is put off by a day at most', () => {
  expect(hourOf(nextAt(learnt, { latest: { status: 'Created', atMs: at(8, 20) }, checkedAtMs: at(8, 20) }))).toBeLessThanOrEqual(44)
})

test('a sample from four weeks ago counts half', () => {
  const later = learnScanRate(learnt, [], at(7, 0) + 28 * DAY_MS)
  const before = learnt.kinds.Created?.scans.reduce((sum, value) => sum + value, 0) ?? 0
  expect(later.kinds.Created?.scans.reduce((sum, value) => sum + value, 0)).toBeCloseTo(before / 2)
})

test('if an entry is usually the third but is now the second, an earlier one is probably missing', () => {
  const places = Array.from({ length: 100 }, (): ScanSample[] => [
    { kind: 'place', status: 'Ingested', entryCount: 2 },
    { kind: 'place', status: 'TerminalArrived', entryCount: 3 },
  ]).flat()
  const scanRate = learnScanRate(emptyScanRate, places, at(7, 0))
  expect(missingBefore(scanRate, 'TerminalArrived', 2, 0.05)).toBeGreaterThan(0.7)
  expect(missingBefore(scanRate, 'TerminalArrived', 3, 0.05)).toBeLessThan(0.01)
})

test('the learnt rates need little space, whatever statuses the carrier sends', () => {
  const words = Array.from({ length: 2000 }, (_, word): ScanSample => ({ ...wait, status: `Status${word}` }))
  expect(JSON.stringify(learnScanRate(emptyScanRate, words, at(7, 0))).length).toBeLessThan(256 * 1024)
})
const wait: ScanSample = { kind: 'wait', status: 'Created', entryCount: 1, fromMs: at(0, 8), toMs: at(0, 9), scanned: true }
