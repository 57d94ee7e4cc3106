import { expect, test } from 'vitest'
import { createCarrierLog } from '../../../src/core/carrier/call/carrier-log.ts'
import type { UnavailableReason } from '../../../src/core/domain/polling/carrier-answer.ts'
import { createLogBook } from '../../support/runner/log-book.ts'

function openNews() {
  let nowMs = 0
  const { log, lines } = createLogBook()
  const news = createCarrierLog({ now: () => nowMs, monotonic: () => nowMs }, log)
  return {
    pass: (ms: number) => {
      nowMs += ms
    },
    fail: (reason: UnavailableReason, detail = 'ECONNREFUSED', conclusive = true) =>
      news.record({ kind: 'unavailable', reason, detail, conclusive }),
    answer: () => news.record({ kind: 'not_found' }),
    loginFailed: () => news.loginFailed({ reason: 'network', detail: 'ECONNREFUSED', conclusive: true }),
    loggedIn: news.loggedIn,
    latest: news.latest,
    flush: news.flush,
    resume: news.resume,
    told: () => lines.filter(({ level }) => level !== 'debug').map(({ level, message, fields }) => ({ level, message, ...fields })),
  }
}

test('an outage of the carrier is logged in one line with its cause, and its end in another', () => {
  const { fail, answer, told } = openNews()
  for (const reason of ['network', 'timeout', 'resting', 'server_error', 'network', 'budget', 'resting'] as const) fail(reason)
  answer()
  answer()
  expect(told()).toEqual([
    {
      level: 'warn',
      message: 'the carrier is down, or cannot be reached: nothing listens there',
      reason: 'network',
      detail: 'ECONNREFUSED',
    },
    { level: 'info', message: 'the carrier answers again', after: 'down', failures: 4, seconds: 0 },
  ])
})

test('a lasting outage is logged at its start, once a minute with a count, and at its end', () => {
  const { fail, answer, flush, pass, told } = openNews()
  const limited = 'the carrier asks for fewer calls: the relay makes none until the time in its Retry-After is over'
  for (let second = 0; second < 150; second += 5) {
    fail('rate_limited', 'status 429')
    flush(7)
    pass(5000)
  }
  answer()
  flush(7)
  const fields = { level: 'warn', message: limited, reason: 'rate_limited', detail: 'status 429' }
  // As everybody is told it.
  const since = new Date(7)
  expect(told()).toEqual([
    fields,
    { ...fields, count: 12, since, seconds: 60 },
    { ...fields, count: 12, since, seconds: 120 },
    { level: 'info', message: 'the carrier answers again', after: 'rate_limited', failures: 30, seconds: 150 },
  ])
})

test('during an outage, a minute without a call is not logged', () => {
  const { fail, flush, pass, told } = openNews()
  fail('network')
  for (let minute = 0; minute < 10; minute++) {
    pass(60_000)
    flush(null)
  }
  expect(told()).toHaveLength(1)
})

test('an outage and a later 429 are logged in one line each', () => {
  const { fail, told } = openNews()
  fail('network')
  fail('rate_limited', 'status 429')
  fail('rate_limited', 'did_not_leave', false)
  expect(told().map((line) => line.message)).toEqual([
    'the carrier is down, or cannot be reached: nothing listens there',
    'the carrier asks for fewer calls: the relay makes none until the time in its Retry-After is over',
  ])
})

test('a carrier that fails on and off causes at most ten lines a minute, and then a count', () => {
  const { fail, answer, told, pass, flush } = openNews()
  for (let at = 0; at < 1000; at++) {
    fail('server_error')
    answer()
  }
  expect(told()).toHaveLength(10)
  pass(60_000)
  flush(null)
  expect(told().at(-1)).toMatchObject({ message: 'calls to the carrier failed', reason: 'server_error', count: 995 })
  fail('network')
  expect(told().at(-1)?.message).toContain('is down')
})

test('a successful login ends a failure of the login, but not a failure of status requests', () => {
  const { fail, loginFailed, loggedIn, latest, told } = openNews()
  loginFailed()
  loggedIn()
  expect(latest()).toEqual({ lastAnswerAtMs: null, lastFailure: null })
  expect(told().map(({ message }) => message)).toEqual([expect.stringMatching(/^the carrier is down/), 'the carrier answers again'])
  loginFailed()
  // A call that the relay itself held back says nothing about the carrier.
  fail('resting')
  loggedIn()
  expect(latest().lastFailure).toBeNull()
  loginFailed()
  fail('timeout')
  loggedIn()
  expect(latest().lastFailure).toMatchObject({ reason: 'timeout' })
})

test('an outage that the store knows is logged with its true beginning, and so is its end', () => {
  const { fail, answer, pass, latest, resume, told } = openNews()
  pass(3_600_000)
  const failure = { reason: 'rejected', status: 403, atMs: 1_800_000 } as const
  const since = new Date(1_800_000)
  resume({ sinceMs: 1_800_000, failure })
  expect(latest().lastFailure).toEqual(failure)
  fail('rejected', 'status 403')
  fail('rejected', 'status 403')
  pass(60_000)
  answer()
  expect(told()).toEqual([
    { level: 'warn', message: expect.stringContaining('has answered no question since then'), since },
    { level: 'warn', message: 'the answers of the carrier cannot be used', reason: 'rejected', detail: 'status 403', since },
    { level: 'info', message: 'the carrier answers again', after: 'unusable_answers', failuresSinceStart: 2, seconds: 1860 },
  ])
})

test('the end of an outage that only another replica has seen is logged, and leaves no failure', () => {
  const { latest, resume, told } = openNews()
  resume({ sinceMs: 0, failure: { reason: 'rejected', atMs: 0 } })
  resume(null)
  expect(latest()).toEqual({ lastAnswerAtMs: null, lastFailure: null })
  expect(told().at(-1)).toMatchObject({ message: 'the carrier answers again', seconds: 0 })
})
