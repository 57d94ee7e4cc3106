import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { QuarantineReason } from '../../../../src/core/domain/history/observation.ts'
import { type BodyFault, findFault, glimpseBody, outlineJson } from '../../../../src/core/domain/ingest/fault-in-body.ts'
import { parseWebhookEvent } from '../../../../src/core/domain/ingest/parse-push.ts'

const EVENT = { status: 'A', detailedStatus: 'B', location: 'Göteborg', eventTime: '2026-03-01T10:00:00Z', trackingIds: ['1001'] }
const bodyOf = (change: object) => Buffer.from(JSON.stringify({ ...EVENT, ...change }))

/** Returns why a body is quarantined, and the member and bytes of the fault. */
function wrongIn(body: Buffer): readonly [reason: QuarantineReason | null, member: string | null, bytes: string | null] {
  const reading = parseWebhookEvent(body, null)
  const reason = reading.ok ? null : reading.reason
  const fault = findFault(body, reason)
  return [reason, fault?.member ?? null, fault === null ? null : body.subarray(fault.from, fault.to).toString('latin1')]
}

test.each([
  [
    'a time that does not end in Z',
    bodyOf({ eventTime: '2026-03-01T10:00:00+01:00' }),
    ['event_time', 'eventTime', '"2026-03-01T10:00:00+01:00"'],
  ],
  ['an identifier with a hyphen', bodyOf({ trackingIds: ['1001', '10-02', '?'] }), ['tracking_id', 'trackingIds[1]', '"10-02"']],
  ['identifiers that are no list', bodyOf({ trackingIds: '1001' }), ['tracking_id', 'trackingIds', '"1001"']],
  ['no identifier', bodyOf({ trackingIds: [] }), ['tracking_id', 'trackingIds', '[]']],
  ['identifiers that are missing', bodyOf({ trackingIds: undefined }), ['tracking_id', 'trackingIds', '}']],
  ['an empty status', bodyOf({ status: '' }), ['schema', 'status', '""']],
  ['a status that is missing', bodyOf({ status: undefined }), ['schema', 'status', '}']],
  ['a list', Buffer.from(' [1] '), ['schema', null, '[1]']],
  ['a comma too many', Buffer.from('{"ö":1,}'), ['json_syntax', null, '}']],
  ['a text that breaks off', Buffer.from('{"languageCode":"sv","val'), ['json_syntax', null, '']],
  ['Latin-1 behind UTF-8', Buffer.concat([Buffer.from('{"a":"ö\u{fffd}'), Buffer.from([0xf6, 0x22, 0x7d])]), ['utf8', null, '\u{f6}']],
  ['a byte order mark', Buffer.from('\u{feff}{}'), ['utf8', null, '\u{ef}\u{bb}\u{bf}']],
  ['a NUL', Buffer.from('{"a":"\0"}'), ['utf8', null, '\0']],
  ['the last of a repeated member', Buffer.from('{"status":"A","status":7,"detailedStatus":"B"}'), ['schema', 'status', '7']],
] as const)('the fault in %s is found', (_what, body, found) => {
  expect(wrongIn(body)).toEqual(found)
})

test('the fault in a body that nests too deep is the first bracket over the limit', () => {
  const body = Buffer.from(`${'{"a":'.repeat(70)}1${'}'.repeat(70)}`)
  expect(findFault(body, 'too_deep')).toEqual({
    member: null,
    isMissing: false,
    from: 5 * 64,
    to: 5 * 64 + 1,
    found: '{',
    unknown: [],
  } satisfies BodyFault)
})

test('the fault of a missing member lists the first three members that the relay does not know', () => {
  const unknownIn = (body: Buffer, reason: QuarantineReason) => findFault(body, reason)?.unknown
  expect(unknownIn(bodyOf({ eventTime: undefined, eventTimestamp: '2026-03-01T10:00:00Z' }), 'event_time')).toEqual(['eventTimestamp'])
  const renamed = { status: undefined, a: 1, b: { status: 2 }, ['c'.repeat(61)]: 3, d: 4 }
  expect(unknownIn(bodyOf(renamed), 'schema')).toEqual(['a', 'b', `${'c'.repeat(60)}…`])
  expect(unknownIn(bodyOf({ status: undefined }), 'schema')).toEqual([])
  expect(unknownIn(bodyOf({ eventTime: 'soon', eventTimestamp: 'now' }), 'event_time')).toEqual([])
})

test('a body that this version understands has no fault', () => {
  for (const reason of ['schema', 'tracking_id', 'json_syntax', 'utf8', 'too_deep', 'failed', null] as const)
    expect(findFault(bodyOf({}), reason)).toBeNull()
})

const parses = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

test('the outline accepts exactly the texts that JSON.parse accepts', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), fc.nat(), fc.string({ maxLength: 2 }), (json, cut, more) => {
      const at = cut % (json.length + 1)
      for (const text of [json, json.slice(0, at), json.slice(0, at) + more + json.slice(at)]) {
        const { errorAt } = outlineJson(text)
        expect([text, errorAt === null]).toEqual([text, parses(text)])
        if (errorAt !== null) expect(errorAt).toBeLessThanOrEqual(text.length)
      }
    }),
  )
})

test('each member and item of the outline equals what JSON.parse reads', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })), fc.nat(3), (object, indent) => {
      const text = JSON.stringify(object, null, indent)
      const { members, items } = outlineJson(text)
      const read = ({ from, to }: { readonly from: number; readonly to: number }): unknown => JSON.parse(text.slice(from, to))
      const parsed = new Map<string, unknown>(Object.entries(JSON.parse(text)))
      expect(new Map([...members].map(([name, span]) => [name, read(span)]))).toEqual(parsed)
      for (const [name, spans] of items) expect(spans.map(read)).toEqual(parsed.get(name))
    }),
  )
})

test('a fault in a megabyte of brackets, quotes or escapes is found without a deep stack', () => {
  for (const piece of ['[', '{"a":', '"', '\\', '[1,', '"\\u0041"']) {
    const body = Buffer.from(piece.repeat(1_000_000 / piece.length))
    expect(findFault(body, 'json_syntax')?.from).toBeLessThanOrEqual(body.length)
  }
})

test('the status and identifiers of an invalid body are reported if they can be read', () => {
  expect(glimpseBody(bodyOf({ eventTime: 'soon', trackingIds: ['ab12', '?'] }))).toEqual({
    status: 'A',
    eventAtMs: null,
    identifiers: ['AB12'],
  })
  expect(glimpseBody(bodyOf({ eventTime: '2026-03-01T10:00:00.250Z' })).eventAtMs).toBe(Date.UTC(2026, 2, 1, 10, 0, 0, 250))
  expect(glimpseBody(Buffer.from('[]'))).toEqual({ status: null, eventAtMs: null, identifiers: [] })
})

test('the text at a fault is shortened, and bytes that are not text are in hexadecimal', () => {
  const found = (body: Buffer, reason: QuarantineReason) => findFault(body, reason)?.found
  expect(found(bodyOf({ eventTime: 'x'.repeat(100) }), 'event_time')).toBe(`"${'x'.repeat(59)}…`)
  expect([found(Buffer.from('\u{feff}{}'), 'utf8'), found(bodyOf({ status: undefined }), 'schema')]).toEqual(['EF BB BF', ''])
})
