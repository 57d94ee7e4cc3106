import { expect, test } from 'vitest'
import { type CarrierState, carrierStanding } from '../../../../src/core/domain/polling/carrier-answer.ts'
import { CARRIER } from '../../../support/network/carrier-state.ts'

const standing = (change: Partial<CarrierState>) => carrierStanding({ ...CARRIER, ...change })
const RATE_LIMITED = { reason: 'rate_limited', atMs: 2000 } as const
const PASSWORD = { reason: 'credentials', atMs: 2000 } as const
const OPEN = { state: 'open', failures: 5, restMs: 1000 } as const

test('a refused password is reported before everything else', () => {
  expect(standing({ credentials: 'refused', breaker: OPEN, lastFailure: RATE_LIMITED })).toEqual({ kind: 'refused' })
})

test('after a password is corrected, a 429 does not count as a refusal', () => {
  for (const credentials of ['unknown', 'obtained', 'accepted'] as const)
    expect(standing({ credentials, lastFailure: RATE_LIMITED })).toEqual({ kind: 'troubled', reason: 'rate_limited' })
})

test('a failure of the credentials ends when the carrier gives a token for them', () => {
  expect(standing({ credentials: 'obtained', lastAnswerAtMs: null, lastFailure: PASSWORD })).toEqual({ kind: 'unasked' })
  expect(standing({ credentials: 'obtained', lastFailure: PASSWORD })).toEqual({ kind: 'answers' })
  expect(standing({ credentials: 'unknown', lastFailure: PASSWORD })).toEqual({ kind: 'troubled', reason: 'credentials' })
})

test('while calls pause after failures, the last failure gives the reason', () => {
  expect(standing({ breaker: OPEN, lastFailure: { reason: 'timeout', atMs: 1 } })).toEqual({ kind: 'failing', reason: 'timeout' })
})

test('an answer after the last failure ends the problem', () => {
  expect(standing({ lastAnswerAtMs: 3000, lastFailure: RATE_LIMITED })).toEqual({ kind: 'answers' })
  expect(standing({ lastAnswerAtMs: null })).toEqual({ kind: 'unasked' })
})
