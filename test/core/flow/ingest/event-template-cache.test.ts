import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseWebhookEvent } from '../../../../src/core/domain/ingest/parse-push.ts'
import { type CachedTemplate, createEventTemplateCache } from '../../../../src/core/flow/ingest/receive.ts'
import { pushBody } from '../../../support/history/builders.ts'

/** Of each text one for each of these: a form is known from the third on. */
const TIMES = [
  '2026-03-01T10:00:00Z',
  '2026-03-01T10:00:00.250Z',
  '2026-02-28T23:59:59Z',
  '2026-03-02T00:00:00.000Z',
  '2026-03-01T10:00:00.670000001Z',
  '2026-03-01T10:00Z',
  '2001-02-03T04:05:06Z',
]
const IDS = ['37300001', 'ab12', 'AB12', '1001', '1002', '1003', 'OTHER1']

const reader = () => {
  const forms = new Map<string, CachedTemplate>()
  return { forms, read: createEventTemplateCache(forms) }
}
/** The texts that a writing of an event gives for different times and ids. */
const writings = (write: (time: string, id: string) => string) => TIMES.map((time, at) => Buffer.from(write(time, IDS[at] ?? '')))
const event = (more: object) => (eventTime: string, id: string) => pushBody({ ...more, eventTime, trackingIds: [id] }).toString()

function expectSame(texts: readonly Uint8Array[], encoding: string | null = null) {
  const { read, forms } = reader()
  for (const body of texts) expect(read(body, encoding), Buffer.from(body).toString()).toEqual(parseWebhookEvent(body, encoding))
  return [...forms.values()]
}

test('an event that says what others have said is read from its form alone', () => {
  const [form, ...others] = expectSame(writings(event({ location: 'Åre' })))
  expect(form).toMatchObject({ said: { location: 'Åre' } })
  expect(others).toEqual([])
})

test('gives what parsing gives, whatever else an event says and however it is written', () => {
  const more = fc.record({
    location: fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom(...TIMES, ...IDS, '"eventTime":"2026-03-01T10:00:00Z"')),
    status: fc.constantFrom('', 'Created', '\u0000', '\ud800', 'trackingIds'),
    extra: fc.jsonValue(),
  })
  const spaced = fc.constantFrom(undefined, 1, '\t', '\n ')
  fc.assert(
    fc.property(more, spaced, (said, space) => {
      expectSame(writings((time, id) => JSON.stringify(JSON.parse(event(said)(time, id)), null, space)))
    }),
    { numRuns: 300 },
  )
})

const HEAD = '"status":"A","detailedStatus":"B"'
const hostile: readonly (readonly [name: string, write: (time: string, id: string) => string])[] = [
  [
    'a time inside of something else first',
    (time, id) => `{${HEAD},"x":{"eventTime":"${time}"},"eventTime":"2026-01-01T00:00:00Z","trackingIds":["${id}"]}`,
  ],
  [
    'a time that is named twice',
    (time, id) => `{${HEAD},"eventTime":"${time}","eventTime":"2026-01-01T00:00:00Z","trackingIds":["${id}"]}`,
  ],
  [
    'named twice, the last as the first check has it',
    (time, id) => `{${HEAD},"eventTime":"${time}","eventTime":"2001-02-03T04:05:06Z","trackingIds":["${id}"]}`,
  ],
  [
    'named twice, once in escapes',
    (time, id) => `{${HEAD},"eventTime":"${time}","event\\u0054ime":"2001-02-03T04:05:0\\u0036Z","trackingIds":["${id}"]}`,
  ],
  ['ids that are named twice', (time, id) => `{${HEAD},"trackingIds":["${id}"],"eventTime":"${time}","trackingIds":["1001","1002"]}`],
  [
    'ids inside of something else first',
    (time, id) => `{${HEAD},"x":[{"trackingIds":["${id}"]}],"eventTime":"${time}","trackingIds":["OTHER1"]}`,
  ],
  ['an empty time beside', (time, id) => `{${HEAD},"x":{"eventTime":""},"eventTime":"${time}","trackingIds":["${id}"]}`],
  ['only an empty time', (time, id) => `{${HEAD},"x":{"eventTime":"${time}"},"eventTime":"","trackingIds":["${id}"]}`],
  ['several ids', (time, id) => `{${HEAD},"eventTime":"${time}","trackingIds":["${id}","1002"]}`],
  ['ids with spaces in them', (time, id) => `{${HEAD},"eventTime":"${time}","trackingIds":[" ${id} "]}`],
  ['marks of its own', (time, id) => `{${HEAD},"x":"\u0001\u0002","eventTime":"${time}","trackingIds":["${id}"]}`],
  ['a byte order mark', (time, id) => `\ufeff{${HEAD},"eventTime":"${time}","trackingIds":["${id}"]}`],
  ['no end', (time, id) => `{${HEAD},"eventTime":"${time}","trackingIds":["${id}"]`],
  ['no status', (time, id) => `{"eventTime":"${time}","trackingIds":["${id}"]}`],
  ['ids first', (time, id) => `{"trackingIds":["${id}"],${HEAD},"eventTime":"${time}"}`],
  ['too deep', (time, id) => `{${HEAD},"x":${'['.repeat(70)}${']'.repeat(70)},"eventTime":"${time}","trackingIds":["${id}"]}`],
  ['a list', (time, id) => `[{${HEAD},"eventTime":"${time}","trackingIds":["${id}"]}]`],
]
test.each(hostile)('gives what parsing gives: %s', (_name, write) => {
  expectSame(writings(write))
})

test('forms that look alike are told apart', () => {
  const { read } = reader()
  const beside = writings((time, id) => `{${HEAD},"x":{"eventTime":""},"eventTime":"${time}","trackingIds":["${id}"]}`)
  const within = writings((time, id) => `{${HEAD},"x":{"eventTime":"${time}"},"eventTime":"","trackingIds":["${id}"]}`)
  for (const body of [...beside, ...within, ...beside]) expect(read(body, null)).toEqual(parseWebhookEvent(body, null))
})

test('a known form with a bad time, encoding or bytes is refused as by parsing', () => {
  const { read } = reader()
  const known = writings(event({}))
  for (const body of known) read(body, null)
  expect(read(Buffer.from(event({})('2026-02-30T10:00:00Z', '1001')), null)).toEqual({ ok: false, reason: 'event_time' })
  expect(read(known[0] ?? Buffer.alloc(0), 'gzip')).toEqual({ ok: false, reason: 'content_encoding' })
  expect(read(Buffer.concat([known[0] ?? Buffer.alloc(0), Buffer.from([0xff])]), null)).toEqual({ ok: false, reason: 'utf8' })
})

test('a text seen once, an ambiguous or a long one is not kept as a template', () => {
  const { read, forms } = reader()
  read(Buffer.from(event({ location: 'once' })(TIMES[0] ?? '', '1001')), null)
  expect([...forms.values()]).toEqual(['met'])
  const twice = writings((time, id) => `{${HEAD},"eventTime":"${time}","eventTime":"2026-01-01T00:00:00Z","trackingIds":["${id}"]}`)
  expect(expectSame(twice)).toEqual(['unfit'])
  expect(expectSame(writings(event({ location: 'far '.repeat(600) })))).toEqual([])
})
