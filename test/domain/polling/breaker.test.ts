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

const failure = (question: string | null, nowMs = 0) => ({ question, wasProbe: false, nowMs, random: 0 })
const failedFor = (questions: readonly (string | null)[], from: Breaker = closedBreaker) =>
  questions.reduce<Breaker>((breaker, question) => afterFailure(breaker, failure(question)), from)
const failed = (times: number) => failedFor(Array.from({ length: times }, () => null))
const opened = failed(FAILURES_TO_OPEN)
const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, at) => `PD${from + at}`)

/** Returns the breaker after a probe that was sent at the end of the pause and failed. */
const probeInVain = (breaker: Breaker, question: string | null = null) =>
  afterFailure(startProbe(breaker), { ...failure(question, breaker.restUntilMs), wasProbe: true })
const restOf = (breaker: Breaker, sinceMs: number) => breaker.restUntilMs - sinceMs

test('P1: the breaker opens after enough failures in a row, and an answer closes it', () => {
  expect(failed(FAILURES_TO_OPEN - 1).state).toBe('closed')
  expect(opened.state).toBe('open')
  expect(afterAnswer(opened, 'PD1')).toEqual(closedBreaker)
})

test('while the breaker is open, the schedule makes no call until the pause ends, then one probe', () => {
  expect(admit(opened, 'schedule', 'PD1', opened.restUntilMs - 1).kind).toBe('rest')
  expect(admit(opened, 'schedule', 'PD1', opened.restUntilMs)).toEqual({ kind: 'probe' })
  expect(admit(startProbe(opened), 'schedule', 'PD1', opened.restUntilMs + 1).kind).toBe('rest')
  expect(admit(startProbe(opened), 'app', 'PD1', opened.restUntilMs + 1).kind).toBe('rest')
})

test('pauses grow with every probe that fails, up to five minutes', () => {
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

test('failures of one question count once; failures such as a refused connection always count', () => {
  const one = failedFor(Array.from({ length: 20 }, () => 'PD1'))
  expect([one.state, one.failures]).toEqual(['closed', 1])
  expect(failedFor(numbers(FAILURES_TO_OPEN)).state).toBe('open')
  expect(failedFor(['PD1', null, null, null, null]).state).toBe('open')
})

test('a question that fails while others are answered no longer counts until it gets an answer', () => {
  const proven = afterAnswer(failedFor(numbers(4)), 'ok')
  expect(failedFor([...numbers(4), ...numbers(4, 4)], proven)).toMatchObject({ state: 'closed', failures: 4 })
  const answered = afterAnswer(proven, 'PD0')
  expect(failedFor(['PD0', ...numbers(4, 4)], answered).state).toBe('open')
})

test('an outage of the carrier opens the breaker, whichever questions failed before', () => {
  const proven = afterAnswer(failedFor(numbers(30)), 'ok')
  expect(failedFor(numbers(30), proven).state).toBe('closed')
  expect(failedFor(numbers(FAILURES_TO_OPEN, 100), proven).state).toBe('open')
})

test('a probe with a question that always fails does not make the pause longer', () => {
  const open = failedFor(numbers(FAILURES_TO_OPEN))
  const again = probeInVain(probeInVain(open, 'PD1'), 'PD2')
  expect([again.state, again.rests, restOf(again, open.restUntilMs + 5000)]).toEqual(['open', 1, 5000])
  expect(probeInVain(again, 'new').rests).toBe(2)
})

test('an app may send a probe before the pause is over, but not with a question that failed', () => {
  const resting = ['a', 'b', 'c', 'd'].reduce((breaker, question) => probeInVain(breaker, question), failedFor(numbers(FAILURES_TO_OPEN)))
  const soon = resting.failedAtMs + 6000
  expect(admit(resting, 'app', 'PD1', soon).kind).toBe('rest')
  expect(admit(resting, 'app', 'other', soon)).toEqual({ kind: 'probe' })
})

test('the breaker remembers a limited number of failing questions', () => {
  const breaker = afterAnswer({ ...closedBreaker, suspects: new Set(numbers(30_000)) }, 'ok')
  expect(breaker.failing.size).toBe(5000)
})

test('an app may probe long before the schedule may', () => {
  const resting = [1, 2, 3, 4, 5, 6, 7].reduce<Breaker>((breaker) => probeInVain(breaker), opened)
  const soon = resting.failedAtMs + 6000
  expect(admit(resting, 'app', 'PD1', soon)).toEqual({ kind: 'probe' })
  expect(admit(resting, 'schedule', 'PD1', soon).kind).toBe('rest')
})

test('calls begun before the breaker opened prolong no pause; a probe without result is repeated', () => {
  expect(failed(20).restUntilMs).toBe(opened.restUntilMs)
  const probing = startProbe(opened)
  expect(admit(afterNoVerdict(probing, true), 'schedule', 'PD1', opened.restUntilMs)).toEqual({ kind: 'probe' })
  expect(afterNoVerdict(probing, false)).toBe(probing)
})

test('the breaker tells the schedule whether it may make all calls, one or none', () => {
  expect(callsAllowedNow({ state: 'closed', restMs: 0 }, 8)).toBe(8)
  expect(callsAllowedNow({ state: 'open', restMs: 0 }, 8)).toBe(1)
  expect(callsAllowedNow({ state: 'open', restMs: 1 }, 8)).toBe(0)
  expect(callsAllowedNow({ state: 'probing', restMs: 0 }, 8)).toBe(0)
})
