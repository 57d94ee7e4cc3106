import { expect, test } from 'vitest'
import { describeNotAsked } from '../../../../src/core/domain/polling/carrier-answer.ts'
import { CARRIER } from '../../../support/network/carrier-state.ts'
import { NOON } from '../../../support/runner/constants.ts'

const FORBIDDEN = { reason: 'rejected', status: 403, atMs: NOON } as const

test('why the carrier cannot be asked: its status, since when, for how long, and a way', () => {
  const breaker = { state: 'open', failures: 5, restMs: 240_000, sinceMs: NOON } as const
  const said = describeNotAsked({ ...CARRIER, breaker, lastFailure: FORBIDDEN }, null)
  for (const part of ['(403)', new Date(NOON).toISOString(), '4 min', 'parcel-relay check']) expect(said).toContain(part)
})

test('one that failed once is told with that failure, one of which nothing is known with nothing', () => {
  expect(describeNotAsked({ ...CARRIER, lastFailure: FORBIDDEN }, null)).toContain('it rejected the question (403)')
  expect(describeNotAsked(CARRIER, null)).toBe('')
})

test('calls that are used up are the relay’s own limit, whatever the carrier does', () => {
  expect(describeNotAsked({ ...CARRIER, lastFailure: FORBIDDEN }, NOON)).toMatch(/callsPerDay.*used up/)
})
