import { expect, test } from 'vitest'
import type { AttemptResult } from '../../../../src/core/domain/delivery/delivery.ts'
import { groupFailures } from '../../../../src/core/domain/delivery/dispatch-round.ts'
import { NOON } from '../../../support/runner/constants.ts'

function answered(status: number, text: string): AttemptResult {
  const kept = { durationMs: 1, answerStart: Buffer.from(text) }
  return status < 300 ? { kind: 'accepted', status, ...kept } : { kind: 'rejected', status, retryAfterMs: null, ...kept }
}

function unanswered(reason: Extract<AttemptResult, { kind: 'failed' }>['reason']): AttemptResult {
  return { kind: 'failed', reason, detail: '', durationMs: 1, answerStart: new Uint8Array() }
}

const attempts = (...results: readonly AttemptResult[]) =>
  results.map((result, at) => ({ endpointId: '1', deliveryId: 100 + at, atMs: NOON + at, result }))
const shown = (results: readonly AttemptResult[]) =>
  groupFailures(attempts(...results))
    .map(({ status, reason, count, answerStart }) => [status ?? reason, count, String(answerStart)])
    .sort((a, b) => (String(a) < String(b) ? -1 : 1))

test('failures with equal answers form one group, with the times of the first and the last', () => {
  const [group, ...others] = groupFailures(attempts(answered(422, 'no'), answered(200, 'no'), answered(422, 'no')))
  expect(others).toEqual([])
  expect(group).toMatchObject({ endpointId: '1', status: 422, reason: null, count: 2, deliveryId: 102 })
  expect([group?.firstAtMs, group?.lastAtMs]).toEqual([NOON, NOON + 2])
})

test('answers that differ only in a time or an id count as equal, and other answers do not', () => {
  const id = '6f9619ff-8b86-d011-b42d-00cf4fc964ff'
  const results = [
    answered(500, `{"at":"2026-03-01T10:00:00Z","request":"${id}"}`),
    answered(500, `{"at":"2026-03-02T11:12:13Z","request":"${id.replace('6f', '7a')}"}`),
    answered(500, '{"error":"database is locked"}'),
    answered(503, '{"error":"database is locked"}'),
    unanswered('timeout'),
    unanswered('timeout'),
    unanswered('dns'),
  ]
  expect(shown(results)).toEqual([
    [500, 1, '{"error":"database is locked"}'],
    [500, 2, expect.stringContaining('2026-03-02')],
    [503, 1, '{"error":"database is locked"}'],
    ['dns', 1, ''],
    ['timeout', 2, ''],
  ])
})

test('failures are grouped by endpoint, without failures that the relay itself caused', () => {
  const [one] = attempts(answered(500, 'x'))
  if (one === undefined) throw new Error('there is no attempt')
  const groups = groupFailures([one, { ...one, endpointId: '2' }, ...attempts(unanswered('interrupted'), unanswered('body_gone'))])
  expect(groups.map(({ endpointId, count }) => [endpointId, count])).toEqual([
    ['1', 1],
    ['2', 1],
  ])
})
