import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NO_NUMBERS } from '../../../src/core/domain/admin/clock-record.ts'
import {
  type AgeMark,
  advancePass,
  beginPass,
  decideFeed,
  decideOverdue,
  decideParcels,
  decidePushBytes,
  decideUnrecorded,
  endPass,
  isHeldLong,
  isPassDue,
  markNow,
  marksKeptFrom,
  type ParcelAge,
  RETENTION_STAGES,
  type Retention,
  upToSize,
} from '../../../src/upkeep/retention/retention.rules.ts'
import { DAY_MS, HOUR_MS, NOON } from '../../support/runner/constants.ts'

const retention: Retention = {
  rawMs: 9 * DAY_MS,
  historyMs: 40 * DAY_MS,
  deliveriesMs: 3 * DAY_MS,
  feedMs: 9 * DAY_MS,
  auditMs: 40 * DAY_MS,
  reportsMs: 40 * DAY_MS,
  heldMs: 60 * DAY_MS,
}

const ago = (days: number) => NOON - days * DAY_MS
const days = fc.integer({ min: 0, max: 100 })

const ALL = {
  livedMs: 0,
  deliveryId: Number.MAX_SAFE_INTEGER,
  inboxId: Number.MAX_SAFE_INTEGER,
  sequence: Number.MAX_SAFE_INTEGER,
  parcelId: Number.MAX_SAFE_INTEGER,
}

describe('data that may not be removed', () => {
  test('an undelivered event is cancelled when it is older than `held`, and not before', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ age: days, isWaiting: fc.boolean() })), (deliveries) => {
        const rows = deliveries.map(({ age, isWaiting }, at) => ({
          deliveryId: at,
          endpointId: '1',
          parcelId: at,
          queuedAtMs: ago(age),
          isWaiting,
          queuedLivedMs: -age,
        }))
        const ages = deliveries.flatMap(({ age, isWaiting }) => (isWaiting ? [age] : []))
        const { cancelled, held } = decideOverdue(rows, NOON, retention, { ...NO_NUMBERS, livedMs: -61 })
        expect(cancelled.map(({ deliveryId }) => deliveries[deliveryId]?.age)).toEqual(ages.filter((age) => age > 60))
        expect(held.count).toBe(ages.filter((age) => age > 3 && age <= 60).length)
      }),
    )
  })

  const push = fc.record({
    age: fc.integer({ min: 10, max: 100 }),
    state: fc.constantFrom('recorded' as const, 'quarantined' as const, 'expired' as const, 'dismissed' as const),
    parcelId: fc.integer({ min: 0, max: 5 }),
    isReplayable: fc.boolean(),
  })

  test('the bytes of a push are cleared unless they are needed, whatever the order of pushes', () => {
    fc.assert(
      fc.property(fc.array(push), fc.array(fc.integer({ min: 1, max: 5 })), fc.boolean(), (pushes, waiting, isBehind) => {
        // The number rises as the age falls, and its last three digits are the index.
        const idOf = (age: number, at: number) => (100 - age) * 1000 + at
        const rows = pushes.map(({ age, ...rest }, at) => ({ ...rest, inboxId: idOf(age, at), receivedAtMs: ago(age), bodyBytes: 1 }))
        const replayable = new Set(pushes.flatMap(({ age, isReplayable }, at) => (isReplayable ? [idOf(age, at)] : [])))
        const needs = { awaited: new Set(waiting), isBehind, replayable }
        const { cleared, closed, held } = decidePushBytes(rows, needs, retention, { ...NO_NUMBERS, livedMs: 0, inboxId: idOf(61, 999) })
        const gone = new Set(cleared.map((id) => id % 1000))
        for (const [at, { age, state, parcelId, isReplayable }] of pushes.entries()) {
          const isOwed = waiting.includes(parcelId)
          const isHeld = age <= 60 && (state === 'quarantined' || isBehind)
          expect(gone.has(at)).toBe(!isOwed && !isHeld && !isReplayable)
        }
        expect(closed).toEqual(cleared.filter((id) => pushes[id % 1000]?.state === 'quarantined'))
        // What may be replayed is not past its time.
        expect(held.count).toBeLessThanOrEqual(pushes.length - cleared.length)
      }),
    )
  })

  test('a parcel is removed when everything about it is old and nothing waits for it', () => {
    const age = fc.record({
      activated: days,
      watched: fc.option(days),
      latest: fc.option(days),
      seen: fc.option(days),
      checked: fc.option(days),
    })
    const some = fc.record({ age, isPolled: fc.boolean(), isAwaited: fc.boolean() })
    fc.assert(
      fc.property(fc.array(some), fc.boolean(), (parcels, isBehind) => {
        const rows = parcels.map((one, at): ParcelAge => parcelOf(at, one))
        const awaited = new Set(parcels.flatMap(({ isAwaited }, at) => (isAwaited ? [at] : [])))
        const { retired } = decideParcels(rows, { awaited, delivered: new Set(), isBehind }, NOON, retention, ALL)
        const expected = parcels.flatMap((one, at) => {
          const { activated, watched, latest, seen, checked } = one.age
          const youngest = Math.min(activated, ...[watched, latest, seen, checked].flatMap((days) => days ?? []))
          const isPast = youngest > 40 && !one.isPolled
          return isPast && !one.isAwaited && !(isBehind && youngest <= 60) ? [at] : []
        })
        expect(retired).toEqual(expected)
      }),
    )
  })

  function parcelOf(parcelId: number, { age, isPolled }: { age: Record<string, number | null>; isPolled: boolean }): ParcelAge {
    const at = (days: number | null | undefined) => (days === null || days === undefined ? null : ago(days))
    const latestMs = at(age.latest)
    return {
      parcelId,
      activatedAtMs: at(age.activated) ?? 0,
      watchedAtMs: at(age.watched),
      latest: latestMs === null ? null : { status: 'Created', atMs: latestMs },
      lastSeenAtMs: at(age.seen),
      checkedAtMs: at(age.checked),
      nextPollAtMs: isPolled ? NOON : null,
      entryCount: 1,
    }
  }

  test('the age of an entry dated in the future counts from when the relay learnt of it', () => {
    const row = parcelOf(1, { age: { activated: 50, latest: 50 }, isPolled: false })
    const dated = { ...row, latest: { status: 'Created', atMs: NOON + 999 * DAY_MS, learntAtMs: ago(50) } }
    const needs = { awaited: new Set<number>(), delivered: new Set<number>(), isBehind: false }
    expect(decideParcels([dated], needs, NOON, retention, ALL).retired).toEqual([1])
    expect(decideParcels([dated], { ...needs, delivered: new Set([1]) }, NOON, retention, ALL).retired).toEqual([])
  })

  test('a push without a parcel stays for `held` if it is in quarantine, else for `history`', () => {
    const rows = [50, 70].flatMap((age) => [
      { inboxId: 100 - age, receivedAtMs: ago(age), state: 'quarantined' as const },
      { inboxId: 101 - age, receivedAtMs: ago(age), state: 'dismissed' as const },
    ])
    const outlived = { ...NO_NUMBERS, livedMs: 0, inboxId: 40 }
    expect(decideUnrecorded(rows, retention, outlived)).toMatchObject({ removed: [51, 30, 31], closed: [30], held: { count: 1 } })
  })

  test('events that a slow endpoint still needs stay in the feed until they are older than `held`', () => {
    const marks = [80, 70, 61, 59, 20, 10, 9, 1].map((age, at): AgeMark => ({ atMs: ago(age), sequence: 100 * (at + 1), parcelId: 0 }))
    const outlived = { ...NO_NUMBERS, livedMs: 0, sequence: 300 }
    const behind = (queuedTo: number) => [{ endpointId: '7', queuedTo }]
    expect(decideFeed(marks, [], NOON, retention, outlived)).toMatchObject({ upTo: 600, passed: [], held: { count: 0 } })
    expect(decideFeed(marks, behind(450), NOON, retention, outlived)).toMatchObject({ upTo: 450, passed: [], held: { count: 150 } })
    expect(decideFeed(marks, behind(50), NOON, retention, outlived)).toMatchObject({
      upTo: 300,
      needed: 50,
      passed: ['7'],
      held: { count: 300 },
    })
    expect(decideFeed([], [], NOON, retention, outlived)).toMatchObject({ upTo: 0 })
  })
})

describe('marks, which record when sequences were reached', () => {
  const hourly = (from: number, to: number) =>
    Array.from({ length: (from - to) * 24 }, (_, at): AgeMark => ({ atMs: ago(from) + at * HOUR_MS, sequence: at, parcelId: at }))

  test('marks of a clock that was wrongly ahead are dropped when the clock is corrected', () => {
    const marks = [...hourly(5, 4), { atMs: NOON + 300 * DAY_MS, sequence: 99, parcelId: 99 }]
    const { mark, droppedAfterMs } = markNow(marks, { atMs: ago(4), sequence: 99, parcelId: 99 })
    expect([mark.atMs, droppedAfterMs]).toEqual([ago(4), ago(4) - HOUR_MS])
  })

  test('a clock that is wrongly put back makes nothing look older', () => {
    const marks = hourly(50, 1)
    const { mark, droppedAfterMs } = markNow(marks, { atMs: ago(20), sequence: 9999, parcelId: 9999 })
    expect([mark.atMs, droppedAfterMs]).toEqual([ago(1) - HOUR_MS, null])
  })

  test('the newest mark older than every period is kept, and older marks are dropped', () => {
    const marks = [70, 65, 61, 59].map((age): AgeMark => ({ atMs: ago(age), sequence: 1, parcelId: 1 }))
    expect(marksKeptFrom(marks, NOON, retention)).toBe(ago(59))
  })
})

describe('a pass', () => {
  test('a pass goes through all stages, and adds up the results of each batch', () => {
    let pass = beginPass(NOON)
    const seen: string[] = []
    for (let batch = 0; ; batch++) {
      seen.push(pass.stage)
      const next = batch % 2 === 0 ? { atMs: 1, id: batch } : null
      const after = advancePass(pass, { removed: 2, held: { count: 1, sinceMs: NOON - batch }, next })
      pass = after.pass
      if (after.isOver) break
    }
    expect(seen).toEqual(RETENTION_STAGES.flatMap((stage) => [stage, stage]))
    const report = endPass(pass, NOON + 1)
    expect(report.removed).toEqual(Object.fromEntries(RETENTION_STAGES.map((stage) => [stage, 4])))
    expect(report.heldSinceMs).toBe(NOON - (2 * RETENTION_STAGES.length - 1))
  })

  test('a pass is due an hour after the last pass began, or at once if a pass has not ended', () => {
    const last = endPass(beginPass(NOON), NOON + 10)
    expect(isPassDue({ pass: null, last: null }, NOON)).toBe(true)
    expect(isPassDue({ pass: null, last }, NOON + HOUR_MS - 1)).toBe(false)
    expect(isPassDue({ pass: null, last }, NOON + HOUR_MS)).toBe(true)
    expect(isPassDue({ pass: null, last }, NOON - HOUR_MS)).toBe(true)
    expect(isPassDue({ pass: beginPass(NOON), last }, NOON + 1)).toBe(true)
  })

  test('operators are notified of data that was held back for 30 days', () => {
    const report = (sinceMs: number | null) => ({ ...endPass(beginPass(NOON), NOON), heldSinceMs: sinceMs })
    expect([report(null), report(ago(29)), report(ago(30))].map(isHeldLong)).toEqual([false, false, true])
  })

  test('a batch has as many rows as fit into its size, and at least one', () => {
    expect(upToSize([5, 5, 5], (size) => size, 10)).toEqual([5, 5])
    expect(upToSize([50, 5], (size) => size, 10)).toEqual([50])
    expect(upToSize([], (size: number) => size, 10)).toEqual([])
  })
})
