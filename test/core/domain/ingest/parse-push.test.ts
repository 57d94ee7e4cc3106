import { expect, test } from 'vitest'
import { parseWebhookEvent } from '../../../../src/core/domain/ingest/parse-push.ts'
import { aPush, pushBody } from '../../../support/history/builders.ts'

const read = (body: string | Uint8Array, encoding: string | null = null) => parseWebhookEvent(Buffer.from(body), encoding)
const event = (change: object) => Buffer.from(JSON.stringify({ ...JSON.parse(pushBody().toString()), ...change }))

test('the event of the specification is read', () => {
  const { sighting, trackingIds } = aPush({ location: null, trackingIds: ['1001', '1002'] })
  expect(trackingIds).toEqual(['1001', '1002'])
  expect(sighting).toMatchObject({
    source: 'push',
    status: 'TerminalArrived',
    location: '',
    displayToConsumer: true,
    distributionType: 'Mailbox',
  })
  expect(sighting.texts).toEqual({ en: { consumer: 'Arrived', detailed: 'Arrived' }, sv: { consumer: 'Framme', detailed: 'Framme' } })
})

test.each([
  ['array', '[]'],
  ['string', '"x"'],
  ['number', '1'],
  ['null', 'null'],
  ['unknown object', '{"a":1}'],
  ['empty status', event({ status: '' })],
  ['status that is no string', event({ status: 1 })],
])('5.3: a body of another shape is quarantined as schema: %s', (_name, body) => {
  expect(read(body)).toEqual({ ok: false, reason: 'schema' })
})

test.each([[[]], [['1001', '__proto__']], [['AB']], [[1001]], ['1001'], [Array.from({ length: 101 }, (_, at) => String(10_000 + at))]])(
  '5.3: without 1 to 100 valid identifiers a push is quarantined as tracking_id: %#',
  (trackingIds) => {
    expect(read(event({ trackingIds }))).toEqual({ ok: false, reason: 'tracking_id' })
  },
)

test('1.1: identifiers of a push are upper-cased and named once', () => {
  expect(aPush({ trackingIds: ['ab12', ' AB12 ', '1001'] }).trackingIds).toEqual(['AB12', '1001'])
})

test('5.3: all other members may be missing, and are ignored if they have another type', () => {
  const bare = { status: 'A', detailedStatus: 'B', eventTime: '2026-03-01T10:00:00Z', trackingIds: ['1001'] }
  const odd = {
    ...bare,
    location: 7,
    displayToConsumer: 'yes',
    distributionType: [],
    consumerDescription: 'text',
    detailedStatusDescription: [1, { value: 1 }],
  }
  const expected = { location: '', displayToConsumer: null, distributionType: null, texts: {} }
  for (const body of [bare, odd]) {
    const reading = read(JSON.stringify(body))
    expect(reading.ok && reading.observation.sighting).toMatchObject(expected)
  }
})

test('4.1: if a language tag is repeated, in upper or lower case, the last text counts', () => {
  const reading = read(
    event({
      detailedStatusDescription: [
        { value: 'one', languageCode: 'SV' },
        { value: 'two', languageCode: 'sv' },
      ],
      consumerDescription: [],
    }),
  )
  expect(reading.ok && reading.observation.sighting.texts).toEqual({ sv: { detailed: 'two' } })
})

test.each([
  [
    'no text with a readable language tag is dropped',
    [
      { value: 'a', languageCode: 'sv_SE' },
      { value: 'b', languageCode: 'en' },
    ],
    0,
  ],
  ['an invalid tag', [{ value: 'a', languageCode: 'svenska språket' }], 1],
  ['no tag, no value, no object', [{ value: 'a' }, { languageCode: 'en' }, { value: 1, languageCode: 'en' }, 'text', null], 5],
  [
    'another text of the same tag',
    [
      { value: 'a', languageCode: 'sv-SE' },
      { value: 'b', languageCode: 'sv_se' },
    ],
    1,
  ],
  [
    'the same text again',
    [
      { value: 'a', languageCode: 'sv' },
      { value: 'a', languageCode: 'SV' },
    ],
    0,
  ],
  ['no list', 'text', 1],
  ['null', null, 0],
])('4.1: the dropped texts of a push are counted: %s', (_name, texts, count) => {
  const reading = read(event({ detailedStatusDescription: texts, consumerDescription: texts }))
  expect(reading.ok && reading.observation.textsDropped).toBe(count * 2)
})

test('5.3: NUL and lone surrogates become U+FFFD in derived text', () => {
  const reading = read(
    '{"status":"A\\u0000","detailedStatus":"\\ud800","eventTime":"2026-03-01T10:00:00Z","trackingIds":["1001"],"location":"x\\u0000"}',
  )
  expect(reading.ok && reading.observation.sighting).toMatchObject({ status: 'A\ufffd', detailedStatus: '\ufffd', location: 'x\ufffd' })
})

test('5.3: nesting over 64 is quarantined as too_deep, and 64 is not', () => {
  const nested = (depth: number) => event({ odd: JSON.parse('['.repeat(depth) + ']'.repeat(depth)) })
  expect(read(nested(63)).ok).toBe(true)
  expect(read(nested(64))).toEqual({ ok: false, reason: 'too_deep' })
  expect(read('['.repeat(100_000) + ']'.repeat(100_000))).toEqual({ ok: false, reason: 'too_deep' })
  expect(read(event({ text: '['.repeat(200) })).ok).toBe(true)
})

test('5.1: an encoded body is quarantined, and not inflated', () => {
  expect(read(pushBody(), 'gzip')).toEqual({ ok: false, reason: 'content_encoding' })
})

test.each([
  ['BOM', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), pushBody()])],
  ['malformed sequence', Buffer.from([0x22, 0xff, 0x22])],
  ['UTF-16', Buffer.from('{"a":1}', 'utf16le')],
])('5.3: bytes that are not plain UTF-8 are quarantined as utf8: %s', (_name, body) => {
  expect(read(body)).toEqual({ ok: false, reason: 'utf8' })
})

test('member names that every object inherits, such as constructor, are read like any other', () => {
  const reading = read(
    '{"__proto__":{"status":"A"},"constructor":1,"detailedStatus":"B","eventTime":"2026-03-01T10:00:00Z","trackingIds":["1001"]}',
  )
  expect(reading).toEqual({ ok: false, reason: 'schema' })
  expect(Object.hasOwn(Object.prototype, 'status')).toBe(false)
})
