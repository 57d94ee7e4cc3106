import { expect, test } from 'vitest'
import { tellFailure } from '../../../../src/core/domain/delivery/operator-event.ts'

const rejected = (status: number, answer: string) =>
  tellFailure({ kind: 'rejected', status, retryAfterMs: null, answerStart: Buffer.from(answer), durationMs: 1 })

test('operators are told the first line of an answer, without the words that may name a parcel', () => {
  expect(rejected(401, 'signature does not match\nfor AB123456789SE')).toEqual({
    status: 401,
    reason: null,
    answer: 'signature does not match',
  })
  expect(rejected(422, 'parcel AB123456789SE (order "A-77") is unknown\u0007')?.answer).toBe('parcel … (order "…") is unknown\ufffd')
  expect(rejected(500, 'x'.repeat(10_000))?.answer).toHaveLength(121)
})

test('operators are told why there was no answer, unless the relay itself was the cause', () => {
  const failed = { kind: 'failed', detail: '', durationMs: 1, answerStart: new Uint8Array() } as const
  expect(tellFailure({ ...failed, reason: 'timeout' })).toEqual({ status: null, reason: 'timeout', answer: '' })
  expect(tellFailure({ ...failed, reason: 'interrupted' })).toBe(null)
})
