import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { createDeliverySigner, type DeliveryContent, encodeEvent } from '../../../../src/core/domain/delivery/delivery-request.ts'
import { parseWebhookEvent } from '../../../../src/core/domain/ingest/parse-push.ts'
import { createVerifier } from '../../../../src/core/domain/ingest/signature.ts'
import { definedHmac, opensslHmac } from '../../../support/delivery/independent-hmac.ts'
import { aPoll, aPush, pushBody, readBack } from '../../../support/history/builders.ts'
import { emptyParcel, observe, presentRecord } from '../../../support/history/parcel-record.ts'
import { testWith } from '../../../support/runner/test-with.ts'

const KEY = 'nyckel-åäö-shop'
const OLD_KEY = 'the-key-before-it'
const body = Buffer.concat([Buffer.from(' \r\n'), pushBody({ location: 'Göteborg' }), Buffer.from('\n')])
const content: DeliveryContent = { webhookId: 'evt_01J-7', sequence: 42, previousSequence: 17, body }
const nowMs = Date.now()
const CONSTANT = { userAgent: 'parcel-relay/9' }

describe('the headers of a delivery', () => {
  test('are exactly six, and the signature is the HMAC of the exact bytes', () => {
    expect(createDeliverySigner({ current: KEY }, 'carrier', CONSTANT).headers(content, nowMs)).toEqual({
      'content-type': 'application/json',
      'user-agent': 'parcel-relay/9',
      'x-service-hmac-sha256': definedHmac(body, KEY),
      'webhook-id': 'evt_01J-7',
      'relay-sequence': '42',
      'relay-previous-sequence': '17',
    })
  })

  test('include the fixed headers of the endpoint, whose user-agent replaces the relay’s', () => {
    const fixed = { authorization: 'Bearer secret', 'user-agent': 'another' }
    expect(createDeliverySigner({ current: KEY }, 'carrier', { ...CONSTANT, fixed }).headers(content, nowMs)).toMatchObject(fixed)
  })

  testWith('openssl')('O8: the signature is what openssl computes', () => {
    for (const key of [KEY, OLD_KEY, 'k'.repeat(100)]) {
      const headers = createDeliverySigner({ current: key }, 'carrier', CONSTANT).headers(content, nowMs)
      expect(headers['x-service-hmac-sha256']).toBe(opensslHmac(body, key))
      expect(headers['x-service-hmac-sha256']).toBe(definedHmac(body, key))
    }
  })

  test('O8: have a signature that verifies, but not after the body has changed', () => {
    const headers = createDeliverySigner({ current: KEY }, 'carrier', CONSTANT).headers(content, nowMs)
    const signature = headers['x-service-hmac-sha256'] ?? ''
    expect(createVerifier([KEY]).verify(body, signature)).toBe(0)
    expect(createVerifier([KEY]).verify(body.subarray(1), signature)).toBeNull()
  })

  test('O9: have the old key’s signature in a rotation, and the next key’s in a second header', () => {
    const signer = createDeliverySigner({ current: OLD_KEY, next: KEY }, 'carrier', CONSTANT)
    const both = { 'x-service-hmac-sha256': definedHmac(body, OLD_KEY), 'x-service-hmac-sha256-next': definedHmac(body, KEY) }
    expect(signer.headers(content, nowMs)).toMatchObject(both)
    expect(signer.headers(content, nowMs, 'exchanged')).toMatchObject({
      'x-service-hmac-sha256': both['x-service-hmac-sha256-next'],
      'x-service-hmac-sha256-next': both['x-service-hmac-sha256'],
    })
  })

  test('stay the same in retries and replays, except for the time and the signature over it', () => {
    const signer = createDeliverySigner({ current: KEY }, 'standard-webhooks', CONSTANT)
    const { 'webhook-timestamp': _, 'webhook-signature': __, ...first } = signer.headers(content, nowMs)
    const { 'webhook-timestamp': later, 'webhook-signature': ___, ...again } = signer.headers(content, nowMs + 3_600_000)
    expect(again).toEqual(first)
    expect(later).toBe(String(Math.floor(nowMs / 1000) + 3600))
  })

  test.each(['a.b', 'a b', '', 'é', 'a\r\nb'])('refuse %j as a webhook-id', (webhookId) => {
    expect(() => createDeliverySigner({ current: KEY }, 'carrier', CONSTANT).headers({ ...content, webhookId }, nowMs)).toThrow(RangeError)
  })
})

describe('signature: standard-webhooks', () => {
  const base64Key = randomBytes(32).toString('base64')
  const headersFor = ([current = '', next]: readonly string[], sent = content) =>
    createDeliverySigner({ current, next }, 'standard-webhooks', CONSTANT).headers(sent, nowMs)

  test.each([
    ['a key with the prefix whsec_', `whsec_${base64Key}`, () => new Webhook(`whsec_${base64Key}`)],
    ['a plain text', KEY, () => new Webhook(Buffer.from(KEY, 'utf8'), { format: 'raw' })],
    ['Base64 that the receiver decodes', base64Key, () => new Webhook(base64Key)],
    ['Base64 that the receiver takes as text', base64Key, () => new Webhook(base64Key, { format: 'raw' })],
    ['the prefix before text that is not Base64', 'whsec_!!', () => new Webhook('whsec_!!', { format: 'raw' })],
  ] as const)('O8: the library of Standard Webhooks verifies what was signed with %s', (_, key, receiver) => {
    const headers = headersFor([key])
    expect(receiver().verify(body, headers)).toEqual(readBack(body.toString().trim()))
    expect(() => receiver().verify(body.toString().replace('Göteborg', 'Malmö'), headers)).toThrow('No matching signature')
    expect(() => receiver().verify(body, { ...headers, 'webhook-id': 'evt_other' })).toThrow('No matching signature')
  })

  test('the carrier’s own header is sent too, signed with the whole text of the key', () => {
    expect(headersFor([`whsec_${base64Key}`])['x-service-hmac-sha256']).toBe(definedHmac(body, `whsec_${base64Key}`))
  })

  test('O9: during a rotation, a receiver with either key can verify the signature', () => {
    const keys = [0, 1].map(() => `whsec_${randomBytes(32).toString('base64')}`)
    const headers = headersFor(keys)
    for (const key of keys) expect(new Webhook(key).verify(body, headers)).toEqual(readBack(body.toString().trim()))
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2)
    expect(() => new Webhook(base64Key).verify(body, headers)).toThrow('No matching signature')
  })

  test('the timestamp is the time of the attempt in seconds, so a receiver may refuse old ones', () => {
    const old = createDeliverySigner({ current: `whsec_${base64Key}` }, 'standard-webhooks', CONSTANT).headers(content, nowMs - 3_600_000)
    expect(() => new Webhook(base64Key).verify(body, old)).toThrow('too old')
  })
})

describe('an entry found by a poll and sent as an event', () => {
  const parcelOf = (...seen: readonly Parameters<typeof observe>[1][]) => presentRecord(seen.reduce(observe, emptyParcel))
  const eventOf = (...seen: readonly Parameters<typeof observe>[1][]) => {
    const { entries, trackingIds, distributionType } = parcelOf(...seen)
    const [entry] = entries
    if (entry === undefined) throw new Error('no entry')
    return Buffer.from(encodeEvent({ entry, trackingIds, distributionType }))
  }

  test('has the shape of the specification, member by member', () => {
    const statuses = [{ location: '', detailedStatusDescription: 'Framme', consumerDescription: 'Hämta' }]
    expect(eventOf(aPoll({ language: 'sv', statuses }), aPoll({ language: 'en', statuses: [{ location: '' }] })).toString()).toBe(
      '{"status":"TerminalArrived","detailedStatus":"ArrivedT2","eventTime":"2026-03-01T10:00:00.000Z","location":null,' +
        '"trackingIds":["1001"],"distributionType":"Mailbox","displayToConsumer":true,' +
        '"consumerDescription":[{"value":"Arrived","languageCode":"en"},{"value":"Hämta","languageCode":"sv"}],' +
        '"detailedStatusDescription":[{"value":"Arrived","languageCode":"en"},{"value":"Framme","languageCode":"sv"}]}',
    )
  })

  test('keeps milliseconds and a location', () => {
    const statuses = [{ eventTimestamp: '2026-03-01T10:00:00.250Z', location: 'Umeå' }]
    expect(readBack(eventOf(aPoll({ statuses })).toString())).toMatchObject({ eventTime: '2026-03-01T10:00:00.250Z', location: 'Umeå' })
  })

  test('an entry that is not for consumers has no text for them in any language', () => {
    const entry = parcelOf(aPoll({ text: 'secret' })).entries[0]
    if (entry === undefined) throw new Error('no entry')
    const bytes = encodeEvent({ entry: { ...entry, displayToConsumer: false }, trackingIds: ['1001'], distributionType: 'Mailbox' })
    expect(readBack(Buffer.from(bytes).toString())).toMatchObject({ displayToConsumer: false, consumerDescription: [] })
  })

  test('a missing text is left out of the event, and an empty one is sent', () => {
    const statuses = [{ consumerDescription: null, detailedStatusDescription: '' }]
    expect(readBack(eventOf(aPoll({ statuses })).toString())).toMatchObject({
      consumerDescription: [],
      detailedStatusDescription: [{ value: '', languageCode: 'en' }],
    })
  })

  test('is a valid event, from which another relay learns the same facts', () => {
    const polled = aPoll({ statuses: [{ eventTimestamp: '2026-03-01T10:00:00.250Z' }] })
    const reading = parseWebhookEvent(eventOf(polled), null)
    if (!reading.ok) throw new Error(reading.reason)
    const [ours] = parcelOf(polled).entries
    const [theirs] = presentRecord(observe(emptyParcel, reading.observation)).entries
    const audience = {
      status: ours?.status,
      atMs: ours?.atMs,
      location: ours?.location,
      texts: ours?.texts,
      displayToConsumer: ours?.displayToConsumer,
    }
    expect(theirs).toMatchObject(audience)
  })

  test('names at most a hundred identifiers, as many as a receiver accepts', () => {
    const entry = parcelOf(aPush()).entries[0]
    if (entry === undefined) throw new Error('no entry')
    const trackingIds = Array.from({ length: 150 }, (_, at) => String(10_000 + at))
    const reading = parseWebhookEvent(encodeEvent({ entry, trackingIds, distributionType: '' }), null)
    expect(reading.ok && reading.observation.trackingIds).toEqual(trackingIds.slice(0, 100))
  })
})
