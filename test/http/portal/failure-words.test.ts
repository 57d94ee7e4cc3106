import { expect, test } from 'vitest'
import type { FailureReason } from '../../../src/domain/delivery/delivery.ts'
import { charactersOf } from '../../../src/http/portal/html.ts'
import { explainFailure } from '../../../src/http/portal/webhooks/failure-words.ts'

const URL_OF_ALL = 'https://shop.example:8443/hook?token=secret'

function told(status: number | null, reason: FailureReason | null, answer = '', isAll = true): string {
  const failure = { status, reason, answerStart: Buffer.from(answer), count: 1, firstAtMs: 1, lastAtMs: 1, deliveryId: 1 }
  return charactersOf(explainFailure(failure, URL_OF_ALL, isAll)).replaceAll(/<[^>]*>/g, '"')
}

test.each([
  [503, 'closed', 'It answers 503 "closed": it can be reached, but fails inside.'],
  [401, '', 'It answers 401: it does not accept the signature. Does it have the current key?'],
  [422, 'unknown\nkind', 'It answers 422 "unknown": it refuses these events.'],
  [410, 'closed', 'It answers 410 "closed": it says that it is gone for good.'],
  [302, 'Location: /new', 'It answers 302 "Location: /new": it redirects, which the relay does not follow; name the final URL.'],
  [404, '', 'It answers 404: it takes no events there. Is the path right?'],
  [413, '', 'It answers 413: the event is too large for it. Does a proxy before it limit the size of bodies?'],
  [415, '', 'It answers 415: it does not take application/json. Is the path right?'],
])('a failure with the answer %i is explained in one sentence', (status, answer, sentence) => {
  expect(told(status, null, answer)).toBe(sentence)
})

test('the text says "some events" if the endpoint has accepted an event since the failure', () => {
  expect(told(422, null, '', false)).toBe('It answers 422: it refuses some events.')
})

test.each<[FailureReason, string]>([
  ['connection_refused', 'No answer: nothing listens at shop.example:8443, or there is no route to it.'],
  ['timeout', 'No answer: shop.example:8443 does not answer in time (delivery.timeout).'],
  ['dns', 'No answer: the name shop.example:8443 is not found.'],
])('a failure without an answer names its kind and the host, but not the rest of the URL: %s', (reason, sentence) => {
  expect(told(null, reason)).toBe(sentence)
})
