import { expect, test } from 'vitest'
import {
  type Audience,
  type BackfillSpan,
  backfillSpan,
  isInAudience,
  type Telling,
  uniteAudiences,
} from '../../../../src/core/domain/history/audience.ts'

const turned = (...at: readonly number[]): BackfillSpan | null =>
  at.reduce<BackfillSpan | null>((span, next, nth) => backfillSpan(span, nth % 2 === 0, next), null)
const told = (...tellings: readonly Telling[]): Audience => ({ kind: 'backfill', tellings })
const only = (at: number): Telling => ({ at, beganBy: null })
const receiver = (backfilled: BackfillSpan | null, beganAtMs = 1000, firstSequence = 0) => ({ backfilled, beganAtMs, firstSequence })
const sentAt = (span: BackfillSpan | null, at: number) => isInAudience(told(only(at)), receiver(span))

test('6.6: after backfill is turned off and on, it is still known which backfill was sent', () => {
  const span = turned(10, 20, 30, 40, 50)
  expect([9, 10, 19, 20, 29, 30, 39, 40, 49, 50, 99].filter((at) => sentAt(span, at))).toEqual([10, 19, 30, 39, 50, 99])
  expect(isInAudience({ kind: 'rest', tellings: [only(15)] }, receiver(span))).toBe(false)
})

test('6.6: turning backfill off and on with nothing recorded in between adds no span', () => {
  expect(turned(10, 20, 20, 20, 20, 30, 30)).toEqual({ from: 30, to: null, earlier: [[10, 30]] })
  expect(turned(10, 10, 10)).toEqual({ from: 10, to: null, earlier: [] })
})

test('7.1: backfill goes to endpoints that began by its time, and the rest is for all others', () => {
  const audience = told({ at: 20, beganBy: 500 })
  const rest: Audience = { kind: 'rest', tellings: [{ at: 20, beganBy: 500 }] }
  const began = [499, 500, 501].map((beganAtMs) => receiver(null, beganAtMs, 10))
  expect(began.map((one) => isInAudience(audience, one))).toEqual([true, true, false])
  expect(began.map((one) => isInAudience(rest, one))).toEqual([false, false, true])
  // It was recorded before the first event of this endpoint.
  expect(isInAudience(audience, receiver(null, 500, 21))).toBe(false)
})

test('6.6: an entry that was told twice counts as sent to the endpoints of both tellings', () => {
  const both = uniteAudiences(told(only(15)), told({ at: 25, beganBy: 500 }))
  const switchedOff = receiver(turned(10, 20))
  expect([switchedOff, receiver(null, 500), receiver(null, 501)].map((one) => isInAudience(both, one))).toEqual([true, true, false])
  expect(uniteAudiences(both, told(only(15)))).toEqual(both)
})
