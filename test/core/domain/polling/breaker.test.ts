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
  isCheckDue,
  isDoubtful,
  mayAskAgain,
  openBreaker,
  startProbe,
} from '../../../../src/core/domain/polling/breaker.ts'
import { HOUR_MS, MINUTE_MS } from '../../../support/runner/constants.ts'

const failure = (question: string | null, nowMs = 0) => ({ question, isRefusal: false, as: 'call' as const, nowMs, random: 0 })
/** Returns the breaker after these questions failed, and opened if it was in doubt. */
const failedFor = (questions: readonly (string | null)[], from: Breaker = closedBreaker) =>
  questions.reduce<Breaker>((breaker, question) => {
    const next = afterFailure(breaker, failure(question))
    return isDoubtful(next, 0) ? openBreaker(next, failure(question)) : next
  }, from)
const failed = (times: number) => failedFor(Array.from({ length: times }, () => null))
const opened = failed(FAILURES_TO_OPEN)
const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, at) => `PD${from + at}`)

/** Returns the breaker after a probe that was sent at the end of the pause and failed. */
const probeInVain = (breaker: Breaker, question: string | null = null) =>
  afterFailure(startProbe(breaker), { ...failure(question, breaker.restUntilMs), as: 'probe' })
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

test('ten probes about parcels fail before the pauses grow', () => {
  const rests: number[] = []
  let breaker = failedFor(numbers(FAILURES_TO_OPEN))
  for (let at = 0; at < 12; at++) {
    const probedAtMs = breaker.restUntilMs
    breaker = probeInVain(breaker, `PD${at}`)
    rests.push(restOf(breaker, probedAtMs))
  }
  expect(rests).toEqual([...Array.from({ length: 9 }, () => 5000), 10_000, 20_000, 40_000])
})

test('an app may send a probe before the pause is over, but not with a question that failed', () => {
  const resting = [null, null, null, 'PD1'].reduce((breaker, question) => probeInVain(breaker, question), failedFor(numbers(5)))
  const soon = resting.failedAtMs + 6000
  expect(admit(resting, 'app', 'PD1', soon).kind).toBe('rest')
  expect(admit(resting, 'app', 'other', soon)).toEqual({ kind: 'probe' })
})

test('an early probe of an app that fails does not postpone the probes of the schedule', () => {
  const resting = [null, null, null, null].reduce((breaker, question) => probeInVain(breaker, question), opened)
  const early = afterFailure(startProbe(resting), { ...failure('garbage', resting.failedAtMs + 6000), as: 'probe' })
  expect(early).toMatchObject({ state: 'open', restUntilMs: resting.restUntilMs, rests: resting.rests })
})

const refused = (questions: readonly string[], from: Breaker = closedBreaker, nowMs = 0) =>
  questions.reduce<Breaker>((breaker, question) => afterFailure(breaker, { ...failure(question, nowMs), isRefusal: true }), from)

test('twenty refusals in a row over five parcels put the carrier in doubt', () => {
  const over = (parcels: number, calls: number) => Array.from({ length: calls }, (_, at) => `PD${at % parcels}`)
  expect(isDoubtful(refused(over(5, 20)), 0)).toBe(true)
  expect(isDoubtful(refused(over(5, 19)), 0)).toBe(false)
  expect(isDoubtful(refused(over(4, 100)), 0)).toBe(false)
  expect(isDoubtful(refused(over(5, 19), afterAnswer(refused(over(20, 19)), 'ok')), 0)).toBe(false)
})

test('a quarter of an hour without an answer puts the carrier in doubt, after three questions', () => {
  const two = refused(['PD1', 'PD1'])
  expect(isDoubtful(two, 60 * MINUTE_MS)).toBe(false)
  const three = refused(['PD1'], two, 10 * MINUTE_MS)
  expect([isDoubtful(three, 15 * MINUTE_MS - 1), isDoubtful(three, 15 * MINUTE_MS)]).toEqual([false, true])
})

test('a failure is checked after five seconds, and two failed checks open the breaker', () => {
  const one = failedFor(['PD1'])
  expect([isCheckDue(one, 4999), isCheckDue(one, 5000)]).toEqual([false, true])
  const check = (breaker: Breaker, nowMs: number) => afterFailure(breaker, { ...failure('PD1', nowMs), as: 'check' })
  const two = check(one, 5000)
  expect([two.state, isCheckDue(two, 9999), check(two, 10_000).state]).toEqual(['closed', false, 'open'])
  expect(isCheckDue(afterAnswer(two, 'ok'), HOUR_MS)).toBe(false)
})

test('the breaker says since when no question is answered', () => {
  expect(failedFor(['PD1', 'PD2']).unansweredSinceMs).toBe(0)
  expect(afterFailure(failedFor(['PD1']), failure('PD2', 7000)).unansweredSinceMs).toBe(0)
  expect(afterAnswer(failedFor(['PD1']), 'PD2').unansweredSinceMs).toBeNull()
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

test('6.8: the poller is woken for a probe, and once when a pause has ended', () => {
  const seen = [
    { state: 'closed', restMs: 0 },
    { state: 'open', restMs: 1000 },
    { state: 'open', restMs: 0 },
    { state: 'probing', restMs: 0 },
    { state: 'closed', restMs: 0 },
    { state: 'closed', restMs: 0 },
  ] as const
  expect(seen.map((now, at) => mayAskAgain(now, seen[at - 1]?.state ?? 'closed'))).toEqual([false, false, true, false, true, false])
})
