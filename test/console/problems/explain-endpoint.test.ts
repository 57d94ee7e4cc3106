import { expect, test } from 'vitest'
import { problemsOf } from '../../../src/console/problems/verdict.ts'
import { newHealth } from '../../../src/core/domain/delivery/endpoint-health.ts'
import { endpointState } from '../../support/delivery/endpoint-state.ts'
import { explainPlainly } from '../../support/portal/plain-explanation.ts'
import { WELL } from '../../support/portal/situation.ts'

const STATE = endpointState(
  { name: 'billing', url: 'http://billing/' },
  { health: { ...newHealth, failingSinceMs: 1, probing: { atMs: 2, failed: 1 } } },
)

function explained(status: number, answer: string) {
  const failure = { status, reason: null, answerStart: Buffer.from(answer), count: 1, firstAtMs: 1, lastAtMs: 1, deliveryId: 1 }
  const situation = { ...WELL, endpoints: [STATE], failures: new Map([['1', failure]]) }
  return problemsOf(situation).map((problem) => explainPlainly(problem, situation, 10_000))
}

test.each([401, 403])('an endpoint that answers %i may have a wrong key, and the steps compare the keys', (status) => {
  const [problem] = explained(status, 'signature does not match\nat line 1')
  expect(problem?.evidence[0]).toBe(`It answers ${status} "signature does not match": it does not accept the signature.`)
  expect(problem?.todo[0]).toMatch(/parcel-relay endpoints show billing.*parcel-relay fingerprint --key-file FILE/)
})

test('if an endpoint answers 503, the first step is to show its answer to the people who run it', () => {
  const [problem] = explained(503, '')
  expect(problem?.evidence[0]).toBe('It answers 503: it can be reached, but fails inside.')
  expect(problem?.todo[0]).toBe('Give its answer to the people who run it. See its answers: parcel-relay endpoints show billing.')
})
