import { expect, test } from 'vitest'
import { charactersOf } from '../../../src/console/portal/html.ts'
import { type FailedWebhook, remedyOf } from '../../../src/console/portal/webhooks/failure-words.ts'
import { type Extent, failureSentence, plainText, remedySentence, wordFailure } from '../../../src/console/problems/words.ts'
import type { FailureReason } from '../../../src/core/domain/delivery/delivery.ts'
import { visitAt } from '../../support/portal/visit.ts'

const URL_OF_ALL = 'https://shop.example:8443/hook?token=secret'
const MANAGED = { id: '3', origin: 'managed' } as const
const CONFIG = { id: '4', origin: 'config' } as const
const OPERATOR = { id: '0', origin: 'operator' } as const

function wordsOf(status: number | null, reason: FailureReason | null, answer = '', extent: Extent = 'all') {
  return wordFailure({ status, reason, answerStart: Buffer.from(answer) }, URL_OF_ALL, extent)
}

function told(...failure: Parameters<typeof wordsOf>): string {
  const words = wordsOf(...failure)
  return `${plainText(failureSentence(words))} ${words.remedy}`
}

test.each([
  [503, 'closed', 'It answers 503 "closed": it can be reached, but fails inside. Give its answer to the people who run it.'],
  [401, '', 'It answers 401: it does not accept the signature. Does it have the current key?'],
  [422, 'unknown\nkind', 'It answers 422 "unknown": it refuses these events. Give its answer to the people who run it.'],
  [410, 'closed', 'It answers 410 "closed": it says that it is gone for good. Has it moved?'],
  [302, 'Location: /new', 'It answers 302 "Location: /new": it redirects, which the relay does not follow. Name the final URL.'],
  [404, '', 'It answers 404: it takes no events there. Is the path right?'],
  [413, '', 'It answers 413: the event is too large for it. Does a proxy before it limit the size of bodies?'],
  [415, '', 'It answers 415: it does not take application/json. Is the path right?'],
])('a failure with the answer %i is explained, and its remedy is named', (status, answer, sentence) => {
  expect(told(status, null, answer)).toBe(sentence)
})

test('the text says whether all events are refused, some, or the one that is shown', () => {
  expect(told(422, null, '', 'some')).toContain('It answers 422: it refuses some events.')
  expect(told(422, null, '', 'one')).toContain('It answers 422: it refuses this event.')
})

test.each<[FailureReason, string]>([
  [
    'connection_refused',
    'No answer: nothing listens at shop.example:8443, or there is no route to it. Does it run, and are its host and port right?',
  ],
  ['timeout', 'No answer: shop.example:8443 does not answer in time (delivery.timeout). It should answer first and work later.'],
  ['dns', 'No answer: the name shop.example:8443 is not found. Is the name right, and does the DNS of this machine know it?'],
  ['certificate_expired', 'No answer: the certificate of shop.example:8443 has expired. Whoever runs it must renew its certificate.'],
])('a failure without an answer names its kind and the host, but not the rest of the URL: %s', (reason, sentence) => {
  expect(told(null, reason)).toContain(sentence)
  expect(told(null, reason)).not.toContain('secret')
})

const linksOf = (words: ReturnType<typeof wordsOf>, webhook: FailedWebhook) =>
  [...charactersOf(remedyOf(visitAt(''), words, webhook)).matchAll(/href="([^"]*)">([^<]*)/g)].map(([, to, text]) => `${to} ${text}`)

const typedFor = { name: 'shop', typed: 'shop' }

test.each<[number | null, FailureReason | null]>([
  [302, null],
  [404, null],
  [405, null],
  [410, null],
  [415, null],
  [null, 'dns'],
  [null, 'connection_refused'],
  [null, 'forbidden'],
  [null, 'certificate_wrong_name'],
  [null, 'tls_protocol'],
])('a failure that another URL may mend leads to the URL: %s %s', (status, reason) => {
  const words = wordsOf(status, reason)
  expect(linksOf(words, MANAGED)).toEqual(['/webhooks/3/edit#url Edit the URL'])
  expect(linksOf(words, CONFIG)).toEqual(['/reload Reload the config'])
  expect(linksOf(words, OPERATOR)).toEqual(['/reload Reload the config'])
  expect(linksOf(words, null)).toEqual([])
  expect(remedySentence(words, { origin: 'managed', ...typedFor })).toContain('parcel-relay endpoints set shop --to URL')
  expect(remedySentence(words, { origin: 'operator', ...typedFor })).toContain('operator.url')
})

test.each([401, 403])('a failure that another key may mend leads to the key: %i', (status) => {
  const words = wordsOf(status, null)
  expect(linksOf(words, MANAGED)).toEqual(['/webhooks/3#key Compare its key'])
  expect(linksOf(words, OPERATOR)).toEqual(['/reload Reload the config'])
  expect(remedySentence(words, { origin: 'config', ...typedFor })).toContain('parcel-relay fingerprint --key-file FILE')
})

test('a reason that only another version of the relay knows is named as it is', () => {
  expect(plainText(failureSentence(wordFailure({ status: null, reason: 'new_kind', answerStart: Buffer.of() }, '', 'all')))).toBe(
    'No answer: new kind.',
  )
})
