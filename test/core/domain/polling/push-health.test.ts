import { expect, test } from 'vitest'
import {
  afterMisread,
  afterMiss,
  afterPoll,
  afterPush,
  afterTrial,
  afterUnpushedEntries,
  areMisread,
  clampChannelToClock,
  estimatePushLoss,
  newestPushes,
  newPushChannel,
  type PushChannel,
  probationOf,
  type UnpushedEntries,
  unpushedSinceLast,
} from '../../../../src/core/domain/polling/push-health.ts'
import { HOUR_MS, MINUTE_MS } from '../../../support/runner/constants.ts'

const START = Date.UTC(2026, 2, 2, 8)

const GRACE_MS = 10 * MINUTE_MS

/**
 * Makes a channel from entries a minute apart: `.` was pushed, `?` was pushed and not understood, and `x` was missed and found ten minutes
 * later. Every minute the carrier answers a poll, and the trial of the pushes is reviewed.
 */
function audience(story: string, from: PushChannel = newPushChannel, startMs = START): PushChannel {
  return [...story].reduce((channel, sign, at) => {
    const atMs = startMs + at * MINUTE_MS
    return look(afterPoll(afterSign(channel, sign, atMs), atMs), atMs)
  }, from)
}
function afterSign(channel: PushChannel, sign: string, atMs: number): PushChannel {
  if (sign === '.') return afterPush(channel, atMs)
  if (sign === '?') return afterMisread(channel, atMs)
  return afterMiss(channel, { eventAtMs: atMs, nowMs: atMs + GRACE_MS })
}
const look = (channel: PushChannel, nowMs: number) => afterTrial(channel, { nowMs, graceMs: GRACE_MS })
/** Returns the channel after a review of the entries that wait for their push. */
const afterReview = (channel: PushChannel, unpushed: Omit<UnpushedEntries, 'nowMs'>) =>
  afterUnpushedEntries(channel, { ...unpushed, nowMs: unpushed.settledToMs + 15 * MINUTE_MS })
const healthy = audience('.'.repeat(100))
const lossy = audience('..x'.repeat(60))

test('6.1: the health of the push channel is unknown before any push and after only a few', () => {
  expect(newPushChannel.health).toBe('unknown')
  expect(audience('x'.repeat(100)).health).toBe('unknown')
  expect(audience('.'.repeat(10)).health).toBe('unknown')
})

test('pushes are healthy if all come, and even if one in twenty is lost', () => {
  expect(healthy.health).toBe('healthy')
  expect(estimatePushLoss(healthy)).toBeLessThan(0.01)
  const twentieth = audience(`${'.'.repeat(19)}x`.repeat(30))
  expect(twentieth.health).toBe('healthy')
  expect(estimatePushLoss(twentieth)).toBeCloseTo(0.05, 1)
})

test('a channel that loses one push in three is lossy', () => {
  expect(lossy.health).toBe('lossy')
})

test('a channel that loses one push in ten does not alternate between lossy and healthy', () => {
  const tenth = `${'.'.repeat(9)}x`.repeat(60)
  expect(audience(tenth, healthy).health).toBe('healthy')
  expect(audience(tenth, audience('..x'.repeat(10), newPushChannel)).health).toBe('lossy')
})

test('old losses are forgotten after many pushes without a loss', () => {
  expect(audience('.'.repeat(2000), lossy).health).toBe('healthy')
})

test('five missed pushes in a row with no push after them are a silence', () => {
  const later = START + 2 * HOUR_MS
  expect(audience('x', healthy, later).health).toBe('healthy')
  expect(audience('xxxxx', healthy, later).health).toBe('silent')
})

test('further missed pushes in a silence are counted, but do not change the estimated loss', () => {
  const later = START + 2 * HOUR_MS
  const noticed = audience('xxxxx', healthy, later)
  const evidence = { sinceMs: START + 99 * MINUTE_MS, noticedAtMs: later + 11 * MINUTE_MS, found: 2 }
  expect(noticed.silence).toEqual({ ...evidence, loss: expect.any(Number) })
  expect([noticed.missedSincePush, noticed.silence?.loss]).toEqual([5, expect.closeTo(estimatePushLoss(healthy), 1)])
  const goesOn = audience('x'.repeat(40), noticed, later + HOUR_MS)
  expect([goesOn.health, goesOn.missedSincePush]).toEqual(['silent', noticed.missedSincePush + 40])
  expect(goesOn.silence).toEqual(noticed.silence)
  expect(estimatePushLoss(goesOn)).toBe(estimatePushLoss(noticed))
  const over = audience('.', goesOn, later + 3 * HOUR_MS)
  expect([over.health, over.missedSincePush, over.silence]).toEqual(['lossy', 0, null])
})

test('pushes that resume after a silence are on probation for half an hour, and then healthy', () => {
  const resumedMs = START + 4 * HOUR_MS
  const noticed = audience('xxxxx', healthy, START + 2 * HOUR_MS)
  const resumed = audience('.', noticed, resumedMs)
  const probation = { sinceMs: resumedMs, untilMs: resumedMs + 30 * MINUTE_MS }
  expect([noticed, resumed, audience('.'.repeat(29), resumed, resumedMs + MINUTE_MS)].map((one) => probationOf(one, GRACE_MS))).toEqual([
    null,
    { ...probation, pushes: 1 },
    { ...probation, pushes: 30 },
  ])
  const trusted = audience('.'.repeat(30), resumed, resumedMs + MINUTE_MS)
  expect([trusted.health, probationOf(trusted, GRACE_MS)]).toEqual(['healthy', null])
  expect(trusted.lastSilence).toEqual({ fromMs: START + 99 * MINUTE_MS, toMs: resumedMs })
})

test('many pushes at once are healthy only after the grace, because losses show only then', () => {
  const flood = afterPoll(afterPush(newPushChannel, START, 400), START + 1000)
  expect(probationOf(flood, GRACE_MS)).toEqual({ sinceMs: START, untilMs: START + 1000 + GRACE_MS, pushes: 400 })
  expect([look(flood, START + 1999).health, look(flood, START + GRACE_MS + 999).health]).toEqual(['unknown', 'unknown'])
  expect(look(flood, START + GRACE_MS + 1000)).toMatchObject({ health: 'healthy', trial: null })
})

test('pushes are not healthy until the carrier has answered a poll that could find a loss', () => {
  const unasked = afterPoll(afterPush(newPushChannel, START, 400), START - 1)
  expect(probationOf(unasked, GRACE_MS)).toEqual({ sinceMs: START, untilMs: null, pushes: 400 })
  expect(look(unasked, START + 24 * HOUR_MS).health).toBe('unknown')
})

test('too few pushes are not healthy, however long ago they came', () => {
  const few = audience('.'.repeat(19))
  expect([look(few, START + 24 * HOUR_MS).health, probationOf(few, GRACE_MS)?.pushes]).toEqual(['unknown', 19])
})

test('too many misread pushes make pushes lossy; when pushes are understood, a probation starts', () => {
  const odd = audience('??', healthy, START + 2 * HOUR_MS)
  expect([odd.health, areMisread(odd), newestPushes(odd)]).toEqual(['healthy', false, { count: 20, misread: 2 }])
  const misread = audience('?', odd, START + 3 * HOUR_MS)
  expect([misread.health, areMisread(misread), probationOf(misread, GRACE_MS)]).toEqual(['lossy', true, null])
  expect(estimatePushLoss(misread)).toBe(estimatePushLoss(healthy))
  const again = audience('.'.repeat(19), misread, START + 4 * HOUR_MS)
  expect([again.health, probationOf(again, GRACE_MS)?.sinceMs]).toEqual(['lossy', START + 4 * HOUR_MS + 18 * MINUTE_MS])
  expect(audience('.'.repeat(31), again, START + 5 * HOUR_MS).health).toBe('healthy')
})

test('pushes are not trusted again while some go into quarantine during the trial', () => {
  const silent = audience('xxxxx', healthy, START + 2 * HOUR_MS)
  expect(audience('..?'.repeat(100), silent, START + 8 * HOUR_MS).health).toBe('lossy')
})

test('a trial does not last longer because the clock was put back', () => {
  const { trial, misreadAtMs } = clampChannelToClock(audience('.?.'), START - HOUR_MS)
  expect([trial?.sinceMs, trial?.polledAtMs, misreadAtMs]).toEqual([START - HOUR_MS, START - HOUR_MS, START - HOUR_MS])
})

test('a silence counts all entries that wait for their push, even those not yet overdue', () => {
  const nowMs = START + 3 * HOUR_MS
  const noticed = afterUnpushedEntries(healthy, { found: 9, overdue: 8, settledToMs: nowMs - 15 * MINUTE_MS, nowMs })
  expect(noticed).toMatchObject({ health: 'silent', missedSincePush: 0, silence: { found: 9, noticedAtMs: nowMs } })
  expect(audience('x'.repeat(9), noticed, START + 2 * HOUR_MS).missedSincePush).toBe(9)
})

test('operators see every entry that proves a silence, even before it counts as missed', () => {
  const nowMs = START + 3 * HOUR_MS
  const noticed = afterUnpushedEntries(healthy, { found: 9, overdue: 8, settledToMs: nowMs - 15 * MINUTE_MS, nowMs })
  expect(unpushedSinceLast(noticed)).toBe(9)
  expect(unpushedSinceLast(audience('x'.repeat(11), noticed, START + 2 * HOUR_MS))).toBe(11)
  expect(unpushedSinceLast(audience('.', noticed, nowMs))).toBe(0)
})

test('missed pushes with other pushes between them are no silence, however many they are', () => {
  expect(audience('x.x.x.x.x.x.x.x.', lossy, START + 4 * HOUR_MS).health).toBe('lossy')
})

test('two missed pushes are a silence at an hour when many pushes are usual', () => {
  const yesterday = audience('.'.repeat(300))
  const today = audience('.', yesterday, START + 24 * HOUR_MS)
  expect(audience('xx', today, START + 24 * HOUR_MS + 2 * MINUTE_MS).health).not.toBe('silent')
  expect(audience('xx', today, START + 24 * HOUR_MS + 60 * MINUTE_MS).health).toBe('silent')
})

test('one missed push after a quiet day is no silence', () => {
  expect(audience('x', healthy, START + 48 * HOUR_MS).health).toBe('healthy')
})

test('after a silence, pushes are trusted again once 20 came and half an hour has passed', () => {
  const silent = audience('xxxxx', healthy, START + 2 * HOUR_MS)
  const again = START + 8 * HOUR_MS
  expect(audience('.', silent, again).health).toBe('lossy')
  expect(audience('.'.repeat(25), silent, again).health).toBe('lossy')
  expect(audience('.'.repeat(40), silent, again).health).toBe('healthy')
})

test('a push lost in a silence does not count against later pushes', () => {
  const silent = audience('xxxxx', healthy, START + 2 * HOUR_MS)
  const found = Array.from({ length: 200 }, (_, at) => at).reduce(
    (channel) => afterMiss(channel, { eventAtMs: START + 3 * HOUR_MS, nowMs: START + 9 * HOUR_MS }),
    audience('.'.repeat(40), silent, START + 8 * HOUR_MS),
  )
  expect(found.health).toBe('healthy')
  expect(estimatePushLoss(found)).toBeLessThan(0.02)
})

const MINUTES_AFTER = (minutes: number) => ({ settledToMs: START + 2 * HOUR_MS + minutes * MINUTE_MS })

test('unpushed entries past their grace prove a silence even before they are counted as missed', () => {
  const unpushed = (overdue: number) => ({ found: overdue, overdue, ...MINUTES_AFTER(0) })
  expect(afterReview(healthy, unpushed(1)).health).toBe('healthy')
  expect(afterReview(healthy, unpushed(5)).health).toBe('silent')
  expect(afterReview(newPushChannel, unpushed(100)).health).toBe('unknown')
})

test('the more pushes are usually lost, the more losses in a row it takes to prove a silence', () => {
  const needed = (channel: PushChannel) =>
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].find(
      (overdue) => afterReview(channel, { found: overdue, overdue, ...MINUTES_AFTER(0) }).health === 'silent',
    ) ?? Number.NaN
  const [none, twentieth, fifth] = ['.'.repeat(600), `${'.'.repeat(19)}x`.repeat(30), '....x'.repeat(120)].map((story) => audience(story))
  expect(needed(none ?? healthy)).toBeLessThan(needed(twentieth ?? healthy))
  expect(needed(twentieth ?? healthy)).toBeLessThan(needed(fifth ?? healthy))
})

test('if usual pushes do not come, entries that polls find prove a silence before any is overdue', () => {
  const yesterday = audience('.'.repeat(300))
  const today = audience('.', yesterday, START + 24 * HOUR_MS)
  const after = (minutes: number, found: number) =>
    afterReview(today, { found, overdue: 0, settledToMs: START + 24 * HOUR_MS + minutes * MINUTE_MS }).health
  expect(after(30, 6)).toBe('silent')
  expect(after(2, 6)).not.toBe('silent')
})

test('a day without the usual pushes is no silence if polls find hardly any entries', () => {
  const yesterday = audience('.'.repeat(300))
  const today = audience('.', yesterday, START + 24 * HOUR_MS)
  expect(afterReview(today, { found: 1, overdue: 1, settledToMs: START + 29 * HOUR_MS }).health).not.toBe('silent')
})

test('losses of one night are weighed against all pushes of the day', () => {
  const days = audience('.'.repeat(2880))
  const night = Array.from({ length: 100 }, (_, at) => START + at * MINUTE_MS).reduce(
    (channel, eventAtMs) => afterMiss(channel, { eventAtMs, nowMs: START + 50 * HOUR_MS }),
    days,
  )
  expect(night.health).toBe('healthy')
})

test('while many pushes are lost, only losses in a row are a silence', () => {
  const lossyToday = audience('..x'.repeat(100))
  const after = (overdue: number) => afterReview(lossyToday, { found: 20, overdue, settledToMs: START + 20 * HOUR_MS }).health
  expect(lossyToday.health).toBe('lossy')
  expect(after(2)).toBe('lossy')
  expect(after(12)).toBe('silent')
})
