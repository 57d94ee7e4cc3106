import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type CadenceFacts, type CadenceModel, nextPoll, pollValue } from '../../../../src/core/domain/polling/cadence.ts'
import { emptyScanRate } from '../../../../src/core/domain/polling/scan-rate.ts'
import { cadence } from '../../../support/history/policy.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'

const facts = (change: Partial<CadenceFacts> = {}): CadenceFacts => ({
  parcelId: 0,
  latest: { status: 'TerminalArrived', atMs: NOON },
  entryCount: 3,
  watchedAtMs: NOON - DAY_MS,
  activatedAtMs: NOON,
  checkedAtMs: NOON,
  failures: 0,
  unpollable: false,
  ...change,
})
const nothingLearnt = (change: Partial<CadenceModel> = {}): CadenceModel => ({
  pushHealth: 'unknown',
  pushLoss: 0.05,
  scanRate: emptyScanRate,
  ...change,
})
const dueInHours = (change: Partial<CadenceFacts>, model: Partial<CadenceModel> = {}) => {
  const next = nextPoll(facts(change), nothingLearnt(model), cadence)
  return next.kind === 'at' ? (next.atMs - NOON) / HOUR_MS : next.reason
}

test('6.1: a parcel is polled as often as its latest status says', () => {
  expect(dueInHours({})).toBe(1)
  expect(dueInHours({ latest: { status: 'Created', atMs: NOON } })).toBe(2)
  expect(dueInHours({ latest: { status: 'DeliveryStarted', atMs: NOON } })).toBe(0.25)
  expect(dueInHours({ latest: { status: 'constructor', atMs: NOON } })).toBe(1)
})

test('an unknown parcel is polled after a minute, or after its interval if that is shorter', () => {
  const unknown = { latest: null, checkedAtMs: null }
  const first = (defaultMs: number) => nextPoll(facts(unknown), nothingLearnt(), { ...cadence, defaultMs })
  expect(first(HOUR_MS)).toMatchObject({ kind: 'at', atMs: NOON + 60_000 })
  expect(first(2000)).toMatchObject({ kind: 'at', atMs: NOON + 2000 })
})

test('6.1: polls are rarer than the cadence only while pushes are healthy', () => {
  expect(dueInHours({}, { pushHealth: 'unknown' })).toBe(1)
  expect(dueInHours({}, { pushHealth: 'lossy' })).toBe(1)
  expect(dueInHours({}, { pushHealth: 'silent' })).toBe(1)
  expect(dueInHours({}, { pushHealth: 'healthy' })).toBe(4)
})

test('6.1: a delivered parcel gets a closing check and the tail of checks, and then no more', () => {
  const delivered = { status: 'DeliverySucceeded', atMs: NOON }
  const checks: (number | string)[] = []
  let checkedAtMs = NOON - HOUR_MS
  for (;;) {
    const next = dueInHours({ latest: delivered, checkedAtMs })
    checks.push(next)
    if (typeof next === 'string') break
    checkedAtMs = NOON + next * HOUR_MS
  }
  expect(checks).toEqual([0, 1, 24, 72, 'delivered'])
})

test('6.1: while pushes are healthy, only the first and last check of the tail are made', () => {
  const latest = { status: 'DeliverySucceeded', atMs: NOON }
  const healthy = { pushHealth: 'healthy' } as const
  expect(dueInHours({ latest, checkedAtMs: null }, healthy)).toBe(1)
  expect(dueInHours({ latest, checkedAtMs: NOON + HOUR_MS }, healthy)).toBe(72)
  expect(dueInHours({ latest, checkedAtMs: NOON + 72 * HOUR_MS }, healthy)).toBe('delivered')
})

test('6.1: an unknown parcel is polled after a minute, and then once in each interval', () => {
  expect(Number(dueInHours({ latest: null, checkedAtMs: null })) * 60).toBeCloseTo(1)
  expect(dueInHours({ latest: null })).toBe(1)
})

test('6.1: a parcel whose delivery is learnt late gets one check, and then no more', () => {
  const latest = { status: 'DeliverySucceeded', atMs: NOON - 10 * DAY_MS }
  expect(dueInHours({ latest, checkedAtMs: null })).toBeLessThan(0)
  expect(dueInHours({ latest, checkedAtMs: NOON })).toBe('delivered')
})

test('6.1: a parcel without news for long is stale, or unknown if it never had news', () => {
  const old = NOON - 30 * DAY_MS
  expect(dueInHours({ latest: { status: 'Ingested', atMs: old }, activatedAtMs: old })).toBe('stale')
  expect(dueInHours({ latest: null, activatedAtMs: old })).toBe('unknown')
})

test('6.1: a push or a request revives a stale parcel', () => {
  expect(dueInHours({ latest: { status: 'Ingested', atMs: NOON - 40 * DAY_MS }, activatedAtMs: NOON })).toBe(1)
})

test('6.1: a push or a request gives a delivered parcel one more check after its interval', () => {
  const latest = { status: 'DeliverySucceeded', atMs: NOON - 10 * DAY_MS }
  const revived = (checkedAtMs: number) => dueInHours({ latest, checkedAtMs, activatedAtMs: NOON })
  expect(revived(NOON - 5 * DAY_MS)).toBe(0)
  expect(revived(NOON - HOUR_MS / 4)).toBe(0.75)
  expect(revived(NOON)).toBe('delivered')
})

test('6.1: a delivery that a push reports after the last check gets another check', () => {
  const late = facts({ latest: { status: 'DeliverySucceeded', atMs: NOON - 2000 }, checkedAtMs: NOON - 1000, activatedAtMs: NOON })
  expect(nextPoll(late, nothingLearnt(), { ...cadence, tailMs: [] })).toMatchObject({ kind: 'at', atMs: NOON - 1000 + HOUR_MS })
  expect(nextPoll({ ...late, checkedAtMs: NOON - HOUR_MS }, nothingLearnt(), { ...cadence, tailMs: [] })).toMatchObject({
    kind: 'at',
    atMs: NOON - 2000,
  })
})

test('6.3: a parcel without an identifier that the carrier knows is not polled', () => {
  expect(dueInHours({ unpollable: true })).toBe('unknown')
})

test('a failed check is retried after 1 minute, then 2 and 4, but at most after its interval', () => {
  const minutes = [1, 2, 3, 10].map((failures) => Number(dueInHours({ failures })) * 60)
  expect(minutes.map(Math.round)).toEqual([1, 2, 4, 60])
})

test('the checks of parcels that came together are spread over a tenth of the interval', () => {
  const due = Array.from({ length: 100 }, (_, parcelId) => Number(dueInHours({ parcelId })))
  expect(new Set(due.map((hours) => Math.round(hours * 600))).size).toBeGreaterThan(50)
  expect(Math.max(...due)).toBeLessThanOrEqual(1.1)
  expect(Math.min(...due)).toBeGreaterThanOrEqual(1)
})

test('the next check is due later than the last check was made', () => {
  const time = fc.integer({ min: NOON - 90 * DAY_MS, max: NOON })
  const latest = fc.option(fc.record({ status: fc.constantFrom('Created', 'DeliverySucceeded', 'Other'), atMs: time }))
  fc.assert(
    fc.property(latest, time, time, fc.nat(9), fc.nat(), (seen, activatedAtMs, checkedAtMs, failures, parcelId) => {
      const next = nextPoll(facts({ latest: seen, activatedAtMs, checkedAtMs, failures, parcelId }), nothingLearnt(), cadence)
      if (next.kind === 'at') expect(next.atMs).toBeGreaterThan(checkedAtMs)
    }),
  )
})

test('6.4: a poll is worth more the older the news is, and least for a delivered parcel', () => {
  const worth = (change: Partial<CadenceFacts>) => pollValue(facts(change), nothingLearnt(), cadence, NOON + 6 * HOUR_MS)
  expect(worth({ checkedAtMs: NOON - DAY_MS, latest: { status: 'Created', atMs: NOON - DAY_MS } })).toBeGreaterThan(worth({}))
  expect(worth({ latest: null, checkedAtMs: null })).toBeGreaterThan(worth({ latest: null }))
  expect(worth({ latest: { status: 'DeliverySucceeded', atMs: NOON - HOUR_MS } })).toBe(Number.NEGATIVE_INFINITY)
})

test('an interval of a year is not shortened', () => {
  const never = 365 * DAY_MS
  const rare = { ...cadence, byStatusMs: {}, defaultMs: never, staleAfterMs: 10 * never }
  const next = nextPoll(facts(), nothingLearnt(), rare)
  expect(next.kind === 'at' && next.atMs - NOON).toBeGreaterThanOrEqual(never)
})
