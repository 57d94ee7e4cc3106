import { expect, test } from 'vitest'
import { headlineOf } from '../../../src/console/problems/headline.ts'
import { problemsOf, type Situation } from '../../../src/console/problems/verdict.ts'
import { newHealth } from '../../../src/core/domain/delivery/endpoint-health.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { CARRIER } from '../../support/network/carrier-state.ts'
import { WELL } from '../../support/portal/situation.ts'

const NOW = 100_000
const headline = (change: Partial<Situation>) => {
  const situation = { ...WELL, ...change }
  return headlineOf(situation, problemsOf(situation), NOW)
}
const TIMED_OUT = {
  ...CARRIER,
  lastFailure: { reason: 'timeout', atMs: NOW - 12_000 },
  breaker: { state: 'closed', failures: 2, restMs: 0 },
} as const

test('a relay without a problem or a caveat works', () => {
  expect(headline({})).toEqual({ verdict: 'works', text: 'Everything works', caveats: [] })
})

test('stalled parcels are in the headline and no problem, beside any caveat', () => {
  const [one, many] = [
    { parcels: 1, isAll: true },
    { parcels: 1000, isAll: false },
  ]
  expect(headline({ stalled: one })).toEqual({ verdict: 'works', text: 'Everything works; 1 parcel is stalled', caveats: [] })
  expect(headline({ stalled: { parcels: 0, isAll: true } }).text).toBe('Everything works')
  expect(headline({ stalled: many, carrier: TIMED_OUT }).text).toBe(
    'Everything works, but the last call to the carrier failed; at least 1,000 parcels are stalled',
  )
  const fresh = { counts: { ...WELL.counts, parcels: 0 }, pushes: { ...WELL.pushes, lastPushAtMs: null } }
  expect(headline({ ...fresh, stalled: one }).text).toContain('Ready: waiting for the first push; 1 parcel is stalled')
})

test('what nothing has shown to work is counted as without evidence, and named', () => {
  const untried = endpointState({ name: 'shop' }, { health: { ...newHealth, lastSuccessAtMs: null } })
  const proven = endpointState({ name: 'till' }, { health: { ...newHealth, lastSuccessAtMs: 1 } })
  const disabled = endpointState({ name: 'old' }, { disabled: 'operator' })
  const pushes = { ...WELL.pushes, health: 'unknown' as const }
  expect(headline({ endpoints: [untried, proven, disabled], pushes, carrier: { ...CARRIER, lastAnswerAtMs: null } })).toEqual({
    verdict: 'works',
    text: 'No trouble seen; 3 checks have no evidence yet',
    caveats: [
      'No evidence yet: it is too early to know whether pushes are lost, the carrier has answered no question since the relay started, shop has accepted nothing.',
    ],
  })
  expect(headline({ endpoints: [proven, disabled] }).text).toBe('Everything works')
  expect(headline({ endpoints: [untried] }).text).toBe('No trouble seen; 1 check has no evidence yet')
})

test('a failed call to the carrier is in the headline; a caveat says when it becomes a problem', () => {
  expect(headline({ carrier: TIMED_OUT })).toEqual({
    verdict: 'works',
    text: 'Everything works, but the last call to the carrier failed',
    caveats: ['The last call to the carrier failed 12 s ago: no answer in time. It becomes a problem after 5 failures in a row; 2 so far.'],
  })
})

test('a failed call says how many in a row had no answer, and since when, once there are two', () => {
  const caveatOf = (count: number) =>
    headline({ carrier: { ...TIMED_OUT, breaker: { ...TIMED_OUT.breaker, unanswered: { count, sinceMs: NOW - 54_000 } } } }).caveats.join()
  expect(caveatOf(3)).toContain(
    ': no answer in time. 3 questions in a row had no answer (what is repeated with a new token counts once), since 1970-01-01T00:00:46.000Z. It becomes a problem',
  )
  expect(caveatOf(1)).not.toContain('in a row had')
})

test('a 429 of the carrier is mentioned, but not announced as a coming problem', () => {
  const limited = { ...TIMED_OUT, lastFailure: { reason: 'rate_limited', atMs: NOW } } as const
  expect(headline({ carrier: limited }).caveats).toEqual([
    'The last call to the carrier failed less than a second ago: it asked for fewer calls (429).',
  ])
})

test('the headline of a new relay also says that its carrier does not answer', () => {
  const fresh = { counts: { ...WELL.counts, parcels: 0 }, pushes: { ...WELL.pushes, lastPushAtMs: null } }
  expect(headline({ ...fresh, carrier: TIMED_OUT })).toMatchObject({
    verdict: 'new',
    text: 'Ready: waiting for the first push, but the last call to the carrier failed',
  })
})

test.each([
  ['rejected', 'Everything works, but the last call to the carrier failed', 'if no question is answered for 15 minutes'],
  ['rate_limited', 'Everything works, but the carrier asks for fewer calls', 'it asked for fewer calls (429).'],
] as const)('the headline says what a last call that ended with %s may become', (reason, text, caveat) => {
  const seen = headline({
    carrier: { ...TIMED_OUT, lastFailure: { reason, atMs: NOW - 1000 }, breaker: { ...TIMED_OUT.breaker, failures: 0 } },
  })
  expect([seen.text, seen.caveats]).toEqual([text, [expect.stringContaining(caveat)]])
})

test('the headline names a failed call as well as pushes that are watched after a silence', () => {
  const [fromMs, sinceMs, untilMs] = [10_000, 50_000, 1_850_000]
  const lastSilence = { fromMs, toMs: sinceMs }
  const pushes = { ...WELL.pushes, health: 'lossy' as const, lastSilence, probation: { sinceMs, untilMs, pushes: 4 } }
  const { text, caveats } = headline({ pushes, carrier: TIMED_OUT })
  expect(text).toBe('Everything works, but the last call to the carrier failed, and pushes have just recovered')
  expect(caveats[1]).toBe(
    'No push came from 1970-01-01T00:00:10.000Z until 1970-01-01T00:00:50.000Z. The relay watches them until 1970-01-01T00:30:50.000Z, and then trusts them if few are lost.',
  )
})

test('the headline names pushes that are not understood, and the caveat says how many', () => {
  const newest = { count: 20, misread: 12, areTooMany: true, misreadAtMs: NOW - 4000 }
  expect(headline({ pushes: { ...WELL.pushes, newest } })).toEqual({
    verdict: 'works',
    text: 'Everything works, but many pushes are not understood',
    caveats: ['Of the newest 20 pushes, 12 went into quarantine, the last one 4 s ago.'],
  })
})

test('the headline counts problems, and keeps the caveats', () => {
  const silent = { pushes: { ...WELL.pushes, health: 'silent' as const } }
  expect(headline({ ...silent, carrier: TIMED_OUT })).toMatchObject({
    verdict: 'problems',
    text: '1 problem',
    caveats: [expect.any(String)],
  })
})

test('refused pushes that anybody may have sent are a caveat, not a problem', () => {
  const spell = { count: 12, fromMs: 1000, untilMs: 61_000 }
  const { verdict, text, caveats } = headline({
    refused: [
      { cause: 'signature', ...spell },
      { cause: 'path', ...spell, count: 1, untilMs: 1000 },
      { cause: 'size', ...spell },
      { cause: 'size', count: 1, fromMs: 0, untilMs: 0 },
    ],
  })
  expect([verdict, text]).toEqual([
    'works',
    'Everything works, but pushes were refused for their signature, and pushes came to a wrong path, and pushes were too large',
  ])
  expect(caveats.map((sentence) => sentence.split('. ')[0])).toEqual([
    '12 requests from 1970-01-01T00:00:01Z until 1970-01-01T00:01:01Z were refused with 401, because their signature does not match',
    '1 request at 1970-01-01T00:00:01Z came with a signature to another path than webhook.path, and got 404',
    '13 requests on 2 occasions between 1970-01-01T00:00:00Z and 1970-01-01T00:01:01Z (the last one from 1970-01-01T00:00:01Z) were larger than webhook.bodyBytesMax, and got 413',
  ])
  const one = headline({ refused: [{ cause: 'signature', count: 1, fromMs: 1000, untilMs: 1000 }] })
  expect(one.caveats.join()).toContain('1 request at 1970-01-01T00:00:01Z was refused with 401')
})

test('the headline leaves out refused pushes after an hour, if a push was understood since', () => {
  const refused = [{ cause: 'signature', count: 1, fromMs: 1000, untilMs: 1000 }] as const
  const at = (nowMs: number, lastPushAtMs: number | null) => {
    const situation = { ...WELL, refused, pushes: { ...WELL.pushes, lastPushAtMs } }
    const { text, caveats } = headlineOf(situation, [], nowMs)
    return [text.includes('but'), caveats.filter((one) => !one.startsWith('No evidence yet')).length]
  }
  expect([at(3_600_999, 2000), at(3_601_000, 2000), at(3_601_000, 1000), at(3_601_000, null)]).toEqual([
    [true, 1],
    [false, 1],
    [true, 1],
    [true, 1],
  ])
})
