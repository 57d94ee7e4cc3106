import { expect, test } from 'vitest'
import { afterMiss, afterPush, afterUnpushed, lossOf, newPushChannel, type PushChannel } from '../../src/domain/push-health.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const START = Date.UTC(2026, 2, 2, 8)

/** Entries a minute apart; `.` was pushed, `x` was missed and found ten minutes later. */
function told(story: string, from: PushChannel = newPushChannel, startMs = START): PushChannel {
  return [...story].reduce((channel, sign, at) => {
    const atMs = startMs + at * MINUTE_MS
    return sign === '.' ? afterPush(channel, atMs) : afterMiss(channel, { eventAtMs: atMs, nowMs: atMs + 10 * MINUTE_MS })
  }, from)
}
const healthy = told('.'.repeat(100))
const lossy = told('..x'.repeat(60))

test('6.1: the health of the push channel is unknown before any push, whatever polls find', () => {
  expect(newPushChannel.health).toBe('unknown')
  expect(told('x'.repeat(100)).health).toBe('unknown')
  expect(told('.'.repeat(10)).health).toBe('unknown')
})

test('pushes that all come are healthy, and so are pushes of which one in twenty is lost', () => {
  expect(healthy.health).toBe('healthy')
  expect(lossOf(healthy)).toBeLessThan(0.01)
  const twentieth = told(`${'.'.repeat(19)}x`.repeat(30))
  expect(twentieth.health).toBe('healthy')
  expect(lossOf(twentieth)).toBeCloseTo(0.05, 1)
})

test('a channel that loses one in three is lossy', () => {
  expect(lossy.health).toBe('lossy')
})

test('a channel is not called lossy and healthy in turns while a tenth is lost', () => {
  const tenth = `${'.'.repeat(9)}x`.repeat(60)
  expect(told(tenth, healthy).health).toBe('healthy')
  expect(told(tenth, told('..x'.repeat(10), newPushChannel)).health).toBe('lossy')
})

test('what happened long ago is forgotten', () => {
  expect(told('.'.repeat(2000), lossy).health).toBe('healthy')
})

test('a handful of misses in a row, with no push since, is silence', () => {
  const later = START + 2 * HOUR_MS
  expect(told('x', healthy, later).health).toBe('healthy')
  expect(told('xxxxx', healthy, later).health).toBe('silent')
})

test('misses among pushes are no silence, however many', () => {
  expect(told('x.x.x.x.x.x.x.x.', lossy, START + 4 * HOUR_MS).health).toBe('lossy')
})

test('two misses are enough when many pushes would have come by the habit of the hour', () => {
  const yesterday = told('.'.repeat(300))
  const today = told('.', yesterday, START + 24 * HOUR_MS)
  expect(told('xx', today, START + 24 * HOUR_MS + 2 * MINUTE_MS).health).not.toBe('silent')
  expect(told('xx', today, START + 24 * HOUR_MS + 60 * MINUTE_MS).health).toBe('silent')
})

test('a quiet day without a scan is no silence', () => {
  expect(told('x', healthy, START + 48 * HOUR_MS).health).toBe('healthy')
})

test('after a silence pushes are trusted again once twenty came and half an hour is over', () => {
  const silent = told('xxxxx', healthy, START + 2 * HOUR_MS)
  const again = START + 8 * HOUR_MS
  expect(told('.', silent, again).health).toBe('lossy')
  expect(told('.'.repeat(25), silent, again).health).toBe('lossy')
  expect(told('.'.repeat(40), silent, again).health).toBe('healthy')
})

test('what was lost in a silence does not count against the pushes after it', () => {
  const silent = told('xxxxx', healthy, START + 2 * HOUR_MS)
  const found = Array.from({ length: 200 }, (_, at) => at).reduce(
    (channel) => afterMiss(channel, { eventAtMs: START + 3 * HOUR_MS, nowMs: START + 9 * HOUR_MS }),
    told('.'.repeat(40), silent, START + 8 * HOUR_MS),
  )
  expect(found.health).toBe('healthy')
  expect(lossOf(found)).toBeLessThan(0.02)
})

test('entries that wait for their push longer than the grace are silence before they count as missed', () => {
  const later = START + 2 * HOUR_MS
  expect(afterUnpushed(healthy, 1, later).health).toBe('healthy')
  expect(afterUnpushed(healthy, 5, later).health).toBe('silent')
  expect(afterUnpushed(newPushChannel, 100, later).health).toBe('unknown')
})
