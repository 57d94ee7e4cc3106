import { expect, test } from 'vitest'
import {
  admit,
  afterAnswer,
  afterFailure,
  afterNoVerdict,
  type Breaker,
  callsAllowedNow,
  closedBreaker,
  FAILURES_TO_OPEN,
  startProbe,
} from '../../../src/domain/polling/breaker.ts'

const failed = (times: number, from: Breaker = closedBreaker) =>
  Array.from({ length: times }).reduce<Breaker>((breaker) => afterFailure(breaker, false, 0, 0), from)
const opened = failed(FAILURES_TO_OPEN)

/** A rest, then a probe that fails. */
const probeInVain = (breaker: Breaker) => afterFailure(startProbe(breaker), true, breaker.restUntilMs, 0)

test('P1: it stays closed until as many failures in a row as it takes, and an answer starts the count anew', () => {
  expect(failed(FAILURES_TO_OPEN - 1).state).toBe('closed')
  expect(opened.state).toBe('open')
  expect(afterAnswer()).toEqual(closedBreaker)
})

test('open, nothing of the schedule leaves until the rest is over, and then one question does', () => {
  expect(admit(opened, 'schedule', opened.restUntilMs - 1).kind).toBe('rest')
  expect(admit(opened, 'schedule', opened.restUntilMs)).toEqual({ kind: 'probe' })
  expect(admit(startProbe(opened), 'schedule', opened.restUntilMs + 1).kind).toBe('rest')
  expect(admit(startProbe(opened), 'app', opened.restUntilMs + 1).kind).toBe('rest')
})

test('rests grow with every probe that fails, to five minutes and no longer', () => {
  const rests: number[] = []
  let breaker = opened
  for (let at = 0; at < 10; at++) {
    rests.push(breaker.restUntilMs - breaker.failedAtMs)
    breaker = probeInVain(breaker)
  }
  expect(rests.slice(0, 3)).toEqual([5000, 10_000, 20_000])
  expect(rests.toSorted((a, b) => a - b)).toEqual(rests)
  expect(rests.at(-1)).toBe(300_000)
})

test('an app may probe long before the schedule may', () => {
  const resting = [1, 2, 3, 4, 5, 6, 7].reduce((breaker) => probeInVain(breaker), opened)
  const soon = resting.failedAtMs + 6000
  expect(admit(resting, 'app', soon)).toEqual({ kind: 'probe' })
  expect(admit(resting, 'schedule', soon).kind).toBe('rest')
})

test('what left before it opened makes no rest longer, and a probe that says nothing lets the next one go', () => {
  expect(failed(20).restUntilMs).toBe(opened.restUntilMs)
  const probing = startProbe(opened)
  expect(admit(afterNoVerdict(probing, true), 'schedule', opened.restUntilMs)).toEqual({ kind: 'probe' })
  expect(afterNoVerdict(probing, false)).toBe(probing)
})

test('the schedule may ask all, one or none', () => {
  expect(callsAllowedNow({ state: 'closed', restMs: 0 }, 8)).toBe(8)
  expect(callsAllowedNow({ state: 'open', restMs: 0 }, 8)).toBe(1)
  expect(callsAllowedNow({ state: 'open', restMs: 1 }, 8)).toBe(0)
  expect(callsAllowedNow({ state: 'probing', restMs: 0 }, 8)).toBe(0)
})
