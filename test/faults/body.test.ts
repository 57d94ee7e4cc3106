import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { signed, startWorld, type Told, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld({ webhook: { bodyBytesMax: '4MB' }, serve: { fetchMissingLanguage: false } })
})
afterAll(() => world.stop())

let nth = 0
function freshId(): string {
  nth += 1
  return `80000000${nth}`
}

/** Writes an event as text. `members` replaces members of the event or adds some, with values that are JSON text. */
function eventText(trackingId: string, members: Readonly<Record<string, string>>): string {
  const usual: Readonly<Record<string, string>> = {
    status: '"TerminalArrived"',
    detailedStatus: '"ArrivedT2"',
    eventTime: '"2026-03-01T10:00:00.250Z"',
    location: '"Stockholm"',
    trackingIds: JSON.stringify([trackingId]),
    distributionType: '"Mailbox"',
    displayToConsumer: 'true',
    consumerDescription: '[{"value":"Arrived","languageCode":"en"}]',
    detailedStatusDescription: '[{"value":"Arrived","languageCode":"en"}]',
  }
  const written = Object.entries({ ...usual, ...members })
  return `{${written.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
}

/** Pushes a body, expects that its exact bytes are stored, and returns its row. */
async function pushed(body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}) {
  const answer = await world.push(body, headers)
  expect([answer.status, await answer.text()]).toEqual([200, ''])
  const row = await world.inbox.rowOf(body)
  expect(row.body.equals(Buffer.from(body))).toBe(true)
  return row
}

async function quarantined(body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<string | null> {
  const { state, reason, parcelId } = await pushed(body, headers)
  expect([state, parcelId]).toEqual(['quarantined', null])
  return reason
}

async function recorded(body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  const { state, reason } = await pushed(body, headers)
  expect([state, reason]).toEqual(['recorded', null])
}

const onlyEntry = ({ statuses }: Told) => {
  expect(statuses).toHaveLength(1)
  return statuses[0] ?? {}
}

/** Waits for a 404. On a busy machine the carrier may answer too late, and the relay then says 503 for a while. */
async function expectUnknown(id: string): Promise<void> {
  await expect.poll(async () => (await world.get(`/v1/status/${id}/all`)).status).toBe(404)
}

describe('bodies that are not events', () => {
  test.each(['[]', '[{}]', '"text"', '1', 'true', 'null', '{}', '{"hello":"world"}', '{"status":"","detailedStatus":"x"}', '{"status":1}'])(
    'B1, B16: %s is quarantined as "schema"',
    async (body) => {
      expect(await quarantined(body)).toBe('schema')
    },
  )

  test.each([
    ['an event within an array', `[${eventText('8111', {})}]`],
    ['a status that is a number', eventText('8111', { status: '7' })],
    ['a status that is null', eventText('8111', { status: 'null' })],
    ['an empty detailedStatus', eventText('8111', { detailedStatus: '""' })],
  ])('B1: %s is quarantined as "schema"', async (_name, body) => {
    expect(await quarantined(body)).toBe('schema')
  })

  test.each([
    ['an empty body', ''],
    ['blanks', ' \r\n'],
    ['a body cut short', pushBody().subarray(0, 100)],
    ['a trailing comma', '{"status":"A",}'],
    ['single quotes', "{'status':'A'}"],
    ['a comment', '{"status":"A"} // late'],
    ['two documents', '{}{}'],
    ['a form', 'status=TerminalArrived&detailedStatus=ArrivedT2'],
    ['a page', '<!doctype html><title>502</title>'],
    ['NaN', '{"status":NaN}'],
    ['a raw control character', '{"status":"a\nb"}'],
    ['a bad escape', '{"status":"\\x41"}'],
    ['100,000 arrays that are never closed', '['.repeat(100_000)],
    ['100,000 objects that are never closed', '{"a":'.repeat(100_000)],
  ])('B2, B16: %s is quarantined as "json_syntax"', async (_name, body) => {
    expect(await quarantined(body)).toBe('json_syntax')
  })

  test.each([
    ['an invalid byte', Buffer.concat([pushBody({ trackingIds: ['8222'] }), Buffer.from([0xff])])],
    ['Latin-1', Buffer.from(eventText('8222', { location: '"Malmö"' }), 'latin1')],
    ['an overlong sequence', Buffer.from('7b22610022c0af227d', 'hex')],
    ['an encoded surrogate', Buffer.from('22eda08022', 'hex')],
    ['a BOM', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), pushBody({ trackingIds: ['8222'] })])],
    ['UTF-16 with a BOM', Buffer.from(`\ufeff${eventText('8222', {})}`, 'utf16le')],
    ['UTF-16 without a BOM', Buffer.from(eventText('8222', {}), 'utf16le')],
  ])('B3: %s is quarantined as "utf8"', async (_name, body) => {
    expect(await quarantined(body)).toBe('utf8')
  })

  test.each([
    ['arrays', 65, '['.repeat(65) + ']'.repeat(65)],
    ['objects', 65, `${'{"a":'.repeat(65)}0${'}'.repeat(65)}`],
    ['arrays', 100_000, '['.repeat(100_000) + ']'.repeat(100_000)],
    ['objects in a good event', 100_000, eventText('8333', { extra: `${'{"a":'.repeat(99_999)}0${'}'.repeat(99_999)}` })],
    ['arrays in a good event', 65, eventText('8333', { extra: '['.repeat(64) + ']'.repeat(64) })],
  ])('B8: %s nested %i deep are quarantined as "too_deep"', async (_name, _depth, body) => {
    expect(await quarantined(body)).toBe('too_deep')
  })

  test('B8: an event nested 64 deep is recorded, and brackets within a text do not count', async () => {
    const id = freshId()
    await recorded(eventText(id, { extra: '['.repeat(63) + ']'.repeat(63), location: JSON.stringify(`${'['.repeat(99)}\\"{{`) }))
    expect(onlyEntry(await world.all(id)).location).toBe(`${'['.repeat(99)}\\"{{`)
  })

  test.each([
    '"2024-02-30T10:00:00Z"',
    '"2023-02-29T10:00:00.000Z"',
    '"2024-01-01T24:00:00Z"',
    '"2024-01-01T23:60:00Z"',
    '"2024-01-01T23:59:60Z"',
    '"2024-13-01T10:00:00Z"',
    '"2024-00-10T10:00:00Z"',
    '"2024-01-01T10:00:00"',
    '"2024-01-01T10:00:00+02:00"',
    '"2024-01-01T10:00:00+00:00"',
    '"2024-01-01T10:00:00z"',
    '"2024-01-01t10:00:00Z"',
    '"2024-01-01 10:00:00Z"',
    '"2024-01-01T10:00:00.1234567890Z"',
    '"2024-01-01T10:00:00.Z"',
    '"2024-01-01T10Z"',
    '"2024-01-01"',
    '"+275760-09-13T00:00:00Z"',
    '"275760-09-13T00:00:00Z"',
    '" 2024-01-01T10:00:00Z"',
    '"2024-01-01T10:00:00Z\\n"',
    '"２０２４-01-01T10:00:00Z"',
    '"1"',
    '""',
    '1704103200',
    'null',
    '["2024-01-01T10:00:00Z"]',
  ])('B10: an eventTime of %s is quarantined as "event_time"', async (eventTime) => {
    const id = freshId()
    expect(await quarantined(eventText(id, { eventTime }))).toBe('event_time')
    await expectUnknown(id)
  })

  test.each([
    ['none', '[]'],
    ['null', 'null'],
    ['a text', '"8444"'],
    ['101', JSON.stringify(Array.from({ length: 101 }, (_, at) => `8444${at}`))],
    ['100,000', JSON.stringify(Array.from({ length: 100_000 }, (_, at) => `8444${at}`))],
    ['a number', '["8444",8444]'],
    ['null among them', '["8444",null]'],
    ['an array', '[["8444"]]'],
    ['an empty text', '["8444",""]'],
    ['an id that is too short', '["844"]'],
    ['an id that is too long', JSON.stringify(['8'.repeat(41)])],
    ['full-width digits', '["８４４４"]'],
    ['a path', '["../8444"]'],
    ['a NUL', '["8444\\u0000"]'],
  ])('B13: trackingIds with %s are quarantined as "tracking_id"', async (_name, trackingIds) => {
    expect(await quarantined(eventText('', { trackingIds }))).toBe('tracking_id')
    await expectUnknown('8444')
  })

  test('B5: __proto__ as a tracking id is quarantined and harmless, and asking for it is a 400', async () => {
    expect(await quarantined(eventText('', { trackingIds: '["__proto__"]' }))).toBe('tracking_id')
    expect((await world.get('/v1/status/__proto__/all')).status).toBe(400)
    expect(Object.keys(Object.prototype)).toEqual([])
  })
})

describe('odd events', () => {
  test('B4: the last value of a repeated key counts, and the bytes are kept', async () => {
    const id = freshId()
    await recorded(eventText(id, {}).replace('"status":', '"status":"First","status":'))
    expect(onlyEntry(await world.all(id)).status).toBe('TerminalArrived')
  })

  test('B5: names that objects inherit are treated like any other names', async () => {
    const id = freshId()
    await recorded(eventText(id, { __proto__x: '1' }).replace('"__proto__x":1', '"__proto__":{"x":1},"constructor":{"prototype":{"x":1}}'))
    expect([Reflect.get({}, 'x'), onlyEntry(await world.all(id)).status]).toEqual([undefined, 'TerminalArrived'])
    for (const status of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const other = freshId()
      await recorded(eventText(other, { status: JSON.stringify(status), detailedStatus: JSON.stringify(status) }))
      expect(onlyEntry(await world.all(other))).toMatchObject({ status, detailedStatus: status })
    }
    await recorded(eventText('', { trackingIds: '["constructor","toString"]' }))
    expect((await world.all('toString')).trackingIds).toEqual(['CONSTRUCTOR', 'TOSTRING'])
  })

  test('B6: NUL and lone surrogates are served as U+FFFD, while the raw bytes stay', async () => {
    const id = freshId()
    const text = '"a\\u0000b\\ud800c\\udc00d\\ud83d\\ude00"'
    const expected = 'a\ufffdb\ufffdc\ufffdd\u{1f600}'
    const texts = `[{"value":${text},"languageCode":"en"}]`
    await recorded(
      eventText(id, {
        status: text,
        detailedStatus: text,
        location: text,
        distributionType: text,
        consumerDescription: texts,
        detailedStatusDescription: texts,
      }),
    )
    const told = await world.all(id)
    expect(told.distributionType).toBe(expected)
    expect(onlyEntry(told)).toMatchObject({
      status: expected,
      detailedStatus: expected,
      location: expected,
      consumerDescription: expected,
      detailedStatusDescription: expected,
    })
  })

  test('B7: numbers too large for a float stay in the raw bytes as written', async () => {
    const id = freshId()
    const body = eventText(id, { weight: '[1e400,12345678901234567890,-0,1.0,1E+2]' })
    await recorded(body)
    expect((await world.inbox.rowOf(body)).body.toString()).toContain('"weight":[1e400,12345678901234567890,-0,1.0,1E+2]')
    expect(onlyEntry(await world.all(id)).status).toBe('TerminalArrived')
  })

  test('B7: numbers too large for a float in a poll are served as written', async () => {
    const id = freshId()
    await recorded(eventText(id, {}))
    const numbers = '[1e400,12345678901234567890,-0,1.0]'
    const body = answerBody({ trackingIds: [id], statuses: [{ weight: 'NUMBERS' }] }).toString()
    world.carrier.says.set(id, () => Buffer.from(body.replace('"NUMBERS"', numbers)))
    expect(await world.refresh(id)).toBe(200)
    expect(await (await world.get(`/v1/status/${id}/all`)).text()).toContain(`"weight":${numbers}`)
  })

  test('B9: an event may have 100,000 keys in one megabyte, or a number of a million digits', async () => {
    const many = Array.from({ length: 100_000 }, (_, at) => `"k${at}":0`).join(',')
    for (const extra of [`{${many}}`, '9'.repeat(1_000_000)]) {
      const id = freshId()
      await recorded(eventText(id, { extra }))
      expect((await world.all(id)).statuses).toHaveLength(1)
    }
    const id = freshId()
    await recorded(`${eventText(id, {}).slice(0, -1)},${many}}`)
    expect((await world.all(id)).statuses).toHaveLength(1)
  })

  test('B11: an event dated ten years ahead is recorded and ordered like any other, and counted', async () => {
    const id = freshId()
    const before = await world.metric('relay_merged_total{result="event_clock_ahead"}')
    const year = new Date().getUTCFullYear()
    await recorded(eventText(id, { eventTime: `"${year + 10}-01-01T00:00:00.000Z"`, status: '"Created"' }))
    await recorded(eventText(id, {}))
    expect((await world.all(id)).statuses.map(({ status }) => status)).toEqual(['Created', 'TerminalArrived'])
    expect(await world.metric('relay_merged_total{result="event_clock_ahead"}')).toBe(before + 1)
  })

  test.each([
    ['the push', true],
    ['the poll', false],
  ])('B12: one instant pushed as .000Z and polled as Z is one entry, %s first', async (_name, pushFirst) => {
    const id = freshId()
    const push = () => recorded(eventText(id, { eventTime: '"2026-03-01T10:00:00.000Z"' }))
    world.carrier.says.set(id, () => answerBody({ trackingIds: [id], statuses: [{ eventTimestamp: '2026-03-01T10:00:00Z' }] }))
    if (pushFirst) await push()
    else await world.all(id)
    if (pushFirst) expect(await world.refresh(id)).toBe(200)
    else await push()
    expect(onlyEntry(await world.all(id)).eventTimestamp).toBe('2026-03-01T10:00:00Z')
  })

  test.each([
    ['2026-11-25T10:15:40.67Z', '2026-11-25T10:15:40.670Z'],
    ['2026-11-25T10:15:40.6700001Z', '2026-11-25T10:15:40.670Z'],
    ['2026-11-25T10:15Z', '2026-11-25T10:15:00.000Z'],
  ])('B12: one instant written as %s and as %s makes one entry, pushed and polled', async (short, full) => {
    const id = freshId()
    await recorded(eventText(id, { eventTime: JSON.stringify(full) }))
    await recorded(eventText(id, { eventTime: JSON.stringify(short) }))
    expect((await world.all(id)).statuses).toHaveLength(1)
    world.carrier.says.set(id, () => answerBody({ trackingIds: [id], statuses: [{ eventTimestamp: short }] }))
    expect(await world.refresh(id)).toBe(200)
    expect(onlyEntry(await world.all(id)).eventTimestamp).toBe(short)
  })

  test('4.1, B15: a text tagged sv_SE is served for sv-SE too; one with an invalid tag is counted', async () => {
    const id = freshId()
    const before = await world.metric('relay_merged_total{result="text_dropped"}')
    const texts = (...tags: string[]) => JSON.stringify(tags.map((languageCode) => ({ value: `in ${languageCode}`, languageCode })))
    await recorded(eventText(id, { detailedStatusDescription: texts('en', 'sv_SE'), consumerDescription: texts('en', 'sv_SE') }))
    for (const language of ['sv_SE', 'sv-SE', 'SV_se']) {
      const answer = await world.get(`/v1/status/${id}/latest?language=${language}`)
      expect([answer.status, answer.headers.get('content-language')]).toEqual([200, 'sv-se'])
      expect(await answer.text()).toContain('"detailedStatusDescription":"in sv_SE","consumerDescription":"in sv_SE"')
    }
    const dropped = async () => (await world.metric('relay_merged_total{result="text_dropped"}')) - before
    expect(await dropped()).toBe(0)
    await recorded(eventText(freshId(), { detailedStatusDescription: texts('in Swedish') }))
    expect(await dropped()).toBe(1)
  })

  test('B13: one to a hundred ids are accepted, without regard to repetition or case', async () => {
    const ids = Array.from({ length: 100 }, (_, at) => `8555${at}`)
    await recorded(eventText('', { trackingIds: JSON.stringify(ids) }))
    expect(new Set((await world.all('855599')).trackingIds)).toEqual(new Set(ids))
    await recorded(eventText('', { trackingIds: '["ab8556se","AB8556SE"," Ab8556Se "]' }))
    expect((await world.all('ab8556se')).trackingIds).toEqual(['AB8556SE'])
  })

  test('B14: unknown values are kept as written, and optional members may be missing', async () => {
    const id = freshId()
    await recorded(
      JSON.stringify({
        status: 'Teleported',
        detailedStatus: 'ByBeam',
        eventTime: '2026-03-01T10:00:00.250Z',
        trackingIds: [id],
        more: { a: 1 },
      }),
    )
    expect(await world.all(id)).toEqual({
      statuses: [
        {
          status: 'Teleported',
          detailedStatus: 'ByBeam',
          eventTimestamp: '2026-03-01T10:00:00.250Z',
          location: '',
          detailedStatusDescription: '',
          consumerDescription: null,
          displayToConsumer: false,
        },
      ],
      trackingIds: [id],
      distributionType: '',
    })
    await recorded(eventText(id, { distributionType: '"Drone"' }))
    expect((await world.all(id)).distributionType).toBe('Drone')
  })

  test('B15: events whose location is missing, null or empty make one entry', async () => {
    const id = freshId()
    await recorded(eventText(id, { location: 'null' }))
    await recorded(eventText(id, { location: '""' }))
    await recorded(eventText(id, { location: '""' }).replace('"location":"",', ''))
    expect(onlyEntry(await world.all(id)).location).toBe('')
    await recorded(eventText(id, {}))
    expect(onlyEntry(await world.all(id)).location).toBe('Stockholm')
  })

  test.each([
    ['[]', null],
    ['null', null],
    ['"text"', null],
    ['[null,1,"x",{}]', null],
    ['[{"value":"First","languageCode":"en"},{"value":"Last","languageCode":"en"}]', 'Last'],
    ['[{"value":"First","languageCode":"EN"},{"value":"Last","languageCode":"en"}]', 'Last'],
    ['[{"value":"Good","languageCode":"en"},{"value":7,"languageCode":"en"},{"value":"x","languageCode":"e n"}]', 'Good'],
  ])('B15: a consumerDescription of %s is read as %j', async (consumerDescription, expected) => {
    const id = freshId()
    await recorded(eventText(id, { consumerDescription }))
    expect(onlyEntry(await world.all(id))).toMatchObject({ consumerDescription: expected, detailedStatusDescription: 'Arrived' })
  })
})

const NASTY = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "javascript:/*--></title></style></textarea></script></xmp><svg/onload='+/\"/+/onmouseover=1/+/[*/[]/+alert(1)//'>",
  '=cmd|"/c calc"!A1',
  '@SUM(1+1)*cmd',
  '+1-1',
  '\u001b[31mred\u001b[0m\u001b]0;title\u0007',
  '\r\nSet-Cookie: a=b\r\n\r\n',
  'one\nline\tmore\u0085next\u2028last\u2029',
  '\u202etfel ot thgir\u202c',
  'مرحبا בעולם',
  'Z̮̞̠͙͔ͅḀ̗̞͈̻̗Ḷ͙͎̯̹̞͓G̻O̭̗̮',
  '👩‍👩‍👧‍👦🇸🇪\u{1f3f4}\u{e0067}\u{e007f}',
  '田中さんにあげて下さい',
  'Å\u0041\u030a\u212b ﬁ',
  '\u00a0\u200b\ufeff\u2060\u00ad',
  '\ufffe\uffff\u{10ffff}',
  '\u0001\u0008\u000b\u001f\u007f',
  "'; DROP TABLE parcel; --",
  '$(touch /tmp/x) `id` {{7*7}} <%= 7*7 %> %s%n%x',
  '../../../etc/passwd',
  '\\"\\\\/\\b\\u0041',
  '__proto__',
  'null',
  'NaN',
  '0x7f.1e400',
  ' leading and trailing ',
  'x'.repeat(20_000),
]

describe('nasty texts', () => {
  test('B17: every text is served as it was pushed, and the log contains none', async () => {
    const id = freshId()
    const minute = (at: number) => `2026-03-01T10:${String(at).padStart(2, '0')}:00.250Z`
    for (const [at, text] of NASTY.entries()) {
      const value = JSON.stringify(text)
      const texts = `[{"value":${value},"languageCode":"en"}]`
      const words = { status: value, detailedStatus: value, location: value, consumerDescription: texts, detailedStatusDescription: texts }
      await recorded(eventText(id, { ...words, eventTime: JSON.stringify(minute(at)) }))
    }
    const { statuses } = await world.all(id)
    expect(statuses).toEqual(
      NASTY.map((text, at) => ({
        status: text,
        detailedStatus: text,
        eventTimestamp: minute(at),
        location: text,
        detailedStatusDescription: text,
        consumerDescription: text,
        displayToConsumer: true,
      })).toReversed(),
    )
    const logged = JSON.stringify(world.lines)
    for (const text of ['alert(1)', 'DROP TABLE', 'cmd|']) expect(logged).not.toContain(text)
  })

  test('B17: every text as a distributionType is served as it was pushed', async () => {
    for (const text of NASTY) {
      const id = freshId()
      await recorded(eventText(id, { distributionType: JSON.stringify(text) }))
      expect((await world.all(id)).distributionType).toBe(text)
    }
  })

  test('B17: a text is the same whether it is written raw or escaped', async () => {
    const id = freshId()
    const escaped = 'åäö😀'.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    await recorded(eventText(id, { location: '"åäö😀"' }))
    await recorded(eventText(id, { location: `"${escaped.join('')}"` }))
    expect(onlyEntry(await world.all(id)).location).toBe('åäö😀')
  })
})

describe('content type and encoding', () => {
  /** Pushes without a content type, because `fetch` sets none for bytes. */
  const pushBare = (body: Uint8Array, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${world.publicUrl}/webhooks/status`, {
      method: 'POST',
      body: Buffer.from(body),
      headers: { 'x-service-hmac-sha256': signed(body), ...headers },
    })

  test('B18: events are recorded whatever their content type is', async () => {
    const types = [
      null,
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'nonsense',
      'application/json; charset=latin1',
    ]
    for (const type of types) {
      const id = freshId()
      const body = pushBody({ trackingIds: [id], location: 'Malmö' })
      expect((await pushBare(body, type === null ? {} : { 'content-type': type })).status).toBe(200)
      expect(await world.inbox.rowOf(body)).toMatchObject({ state: 'recorded', reason: null })
      expect(onlyEntry(await world.all(id)).location).toBe('Malmö')
    }
  })

  test('B18: a body in UTF-16 is verified by its bytes and quarantined as "utf8"', async () => {
    const body = Buffer.from(eventText(freshId(), {}), 'utf16le')
    expect(await quarantined(body, { 'content-type': 'application/json; charset=utf-16' })).toBe('utf8')
  })

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['gzip, identity', gzipSync],
    ['x-unheard-of', gzipSync],
  ])('B19: a body encoded as %s is verified as sent and quarantined as "content_encoding"', async (encoding, encode) => {
    const id = freshId()
    const wire = encode(pushBody({ trackingIds: [id] }))
    expect(await quarantined(wire, { 'content-encoding': encoding })).toBe('content_encoding')
    expect((await world.inbox.rowOf(wire)).contentEncoding).toBe(encoding)
    await expectUnknown(id)
  })

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('B19: a body in %s with the signature of its inflated bytes gets a 401 and is not stored', async (encoding, encode) => {
    const inflated = pushBody({ trackingIds: [freshId()] })
    const wire = encode(inflated)
    const answer = await world.push(wire, { 'content-encoding': encoding, 'x-service-hmac-sha256': signed(inflated) })
    expect(answer.status).toBe(401)
    expect([...(await world.inbox.rowsOf(wire)), ...(await world.inbox.rowsOf(inflated))]).toEqual([])
  })

  test.each([
    // Several gzip members in a row are one valid gzip.
    ['gzip', () => Buffer.concat(Array.from({ length: 200 }, () => gzipSync(Buffer.alloc(1_000_000))))],
    ['br', () => brotliCompressSync(Buffer.alloc(200_000_000), { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } })],
  ])('B20: 200 MB in a small %s are quarantined without being inflated', async (encoding, compress) => {
    const bomb = compress()
    expect(bomb.length).toBeLessThan(250_000)
    const before = process.memoryUsage.rss()
    for (let at = 0; at < 5; at++) {
      const wire = Buffer.concat([bomb, Buffer.from(` ${at}`)])
      expect(await quarantined(wire, { 'content-encoding': encoding })).toBe('content_encoding')
    }
    // This limit on the memory is far below the size of a single inflated body.
    expect(process.memoryUsage.rss() - before).toBeLessThan(40_000_000)
  })

  test('B19: a body with the encoding `identity` is recorded like one without an encoding', async () => {
    const id = freshId()
    await recorded(pushBody({ trackingIds: [id] }), { 'content-encoding': 'identity' })
    expect((await world.all(id)).statuses).toHaveLength(1)
  })
})
