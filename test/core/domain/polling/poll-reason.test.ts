import { expect, test } from 'vitest'
import { describePoll, describeStop } from '../../../../src/core/domain/polling/best-poll-time.ts'
import { type CadenceFacts, type CadenceModel, nextPoll } from '../../../../src/core/domain/polling/cadence.ts'
import { emptyScanRate, learnScanRate } from '../../../../src/core/domain/polling/scan-rate.ts'
import { cadence } from '../../../support/history/policy.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../../support/runner/constants.ts'

const delivered = { status: 'DeliverySucceeded', atMs: NOON }

function why(change: Partial<CadenceFacts>, model: Partial<CadenceModel> = {}): string {
  const facts = {
    parcelId: 0,
    latest: { status: 'DeliveryStarted', atMs: NOON },
    entryCount: 3,
    watchedAtMs: NOON - DAY_MS,
    activatedAtMs: NOON,
  }
  const next = nextPoll(
    { ...facts, checkedAtMs: NOON, failures: 0, unpollable: false, ...change },
    { pushHealth: 'unknown', pushLoss: 0.05, scanRate: emptyScanRate, ...model },
    cadence,
  )
  return next.kind === 'at' ? describePoll(next.why) : describeStop(next.reason)
}

test('the reason of the next poll is a sentence that names what decided its time', () => {
  expect(why({})).toBe('DeliveryStarted: about every 15 min.')
  expect(why({}, { pushHealth: 'healthy' })).toBe('DeliveryStarted: about every 1 h, because pushes are reliable.')
  expect(why({ latest: null, checkedAtMs: null })).toBe('Nothing is known of it yet: it is asked about soon, unless a push comes first.')
  expect(why({ latest: null })).toBe('At the last check the carrier reported nothing about it: about every 1 h.')
  expect(why({ failures: 1 })).toBe('The last check failed: it is tried again after 1 min.')
  expect(why({ failures: 3 })).toBe('The last 3 checks failed: it is tried again after 4 min.')
})

test('the reason of a check after the delivery says when it comes, and how many more follow', () => {
  expect(why({ latest: delivered, checkedAtMs: NOON - HOUR_MS, activatedAtMs: NOON - DAY_MS })).toBe(
    `It is delivered: one check as soon as the relay knows it, ${cadence.tailMs.length} more will follow.`,
  )
  expect(why({ latest: delivered, checkedAtMs: NOON + 1, activatedAtMs: NOON })).toBe(
    `It is delivered: the check 1 h after that, ${cadence.tailMs.length - 1} more will follow.`,
  )
  expect(why({ latest: delivered, checkedAtMs: NOON + 2 * HOUR_MS, activatedAtMs: NOON }, { pushHealth: 'healthy' })).toMatch(
    /^It is delivered: the check .* after that, the last one\. Pushes are reliable, so some checks of poll\.finished\.tail are left out\.$/,
  )
  const late = { latest: { ...delivered, atMs: NOON - 5 * DAY_MS }, checkedAtMs: NOON - HOUR_MS }
  expect(why(late)).toBe('It is delivered, and a push or a question came since the last check: one more check.')
  expect(why({ ...late, activatedAtMs: NOON - 5 * DAY_MS })).toBe('It is delivered, and all checks after that are done.')
})

test('with a learnt scan rate, the reason says that the carrier usually scans at that hour', () => {
  const wait = {
    kind: 'wait',
    status: 'DeliveryStarted',
    entryCount: 3,
    fromMs: NOON - 2 * HOUR_MS,
    toMs: NOON - HOUR_MS,
    scanned: true,
  } as const
  const scanRate = learnScanRate(
    emptyScanRate,
    Array.from({ length: 500 }, () => wait),
    NOON,
  )
  expect(why({}, { scanRate })).toBe('DeliveryStarted: at hours when the carrier usually scans parcels, on average about every 15 min.')
})
