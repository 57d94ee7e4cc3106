import { expect, test } from 'vitest'
import { namesInBody, searchFor, wordsInBody } from '../../../../src/core/domain/names-in-text.ts'

const named = (body: Uint8Array | string, ...identifiers: readonly string[]) =>
  namesInBody(Buffer.from(body), searchFor(new Set(identifiers)))
const NOTHING = { named: [], isUnclear: false }

test.each([
  ['plain text', Buffer.from('GONE0001')],
  ['lower case', Buffer.from('{"trackingIds":["gone0001"]}')],
  ['a JSON escape', Buffer.from('{"id":"\\u0047ONE0001"}')],
  ['a line break before it', Buffer.from('"note\\nGONE0001"')],
  ['UTF-16', Buffer.from('"GONE0001"', 'utf16le')],
  ['bytes that are no text', Buffer.concat([Buffer.from([0xff, 0xfe, 0x80]), Buffer.from('GONE0001'), Buffer.from([0xc3])])],
])('an identifier is found in %s', (_form, body) => {
  expect(wordsInBody(body).has('GONE0001')).toBe(true)
  expect(named(body, 'GONE0001', 'OTHER001').named).toEqual(['GONE0001'])
})

test.each([
  ['groups', '{"note":"parcel ab 730 000 001 se is late"}'],
  ['hyphens', '{"trackingIds":["AB-730-000-001-SE"]}'],
  ['invisible marks', '{"trackingIds":["AB730\u00ad000\u200b001SE"]}'],
  ['a name of a member', '{"parcels":{"AB730000001SE":1}}'],
  ['the first of two members of one name', '{"id":"AB730000001SE","id":"X"}'],
  ['a member of an enumeration', '{"status":"AB730000001SE"}'],
  ['broken JSON', '{"trackingIds":["AB730000001SE'],
  ['a form', 'trackingIds=AB 730 000 001 SE'],
])('an identifier is found in %s', (_form, body) => {
  expect(named(body, 'AB730000001SE')).toEqual({ named: ['AB730000001SE'], isUnclear: false })
})

test('a number is found as it is written, and where letters meet digits in a longer word', () => {
  expect(named('{"id":84000001000000000000}', '84000001000000000000').named).toEqual(['84000001000000000000'])
  expect(named('{"link":"/track/id84000001x"}', '84000001').named).toEqual(['84000001'])
})

test('a part of a longer word may belong to another identifier, so the body only may name it', () => {
  expect(named('{"trackingIds":["840000012"]}', '84000001')).toEqual({ named: [], isUnclear: true })
  expect(named('{"trackingIds":["XGONE0001"]}', 'GONE0001')).toEqual({ named: [], isUnclear: true })
  expect(named('{"note":"trueblue 120267"}', 'TRUE', '2026')).toEqual(NOTHING)
})

test('1.8: instants, enumerations, names of members and literals do not name 2026, TRUE or ADMIN', () => {
  const body = { status: 'ADMIN', eventTime: '2026-11-29T10:00:00Z', ok: true, none: null, admin: 7, note: 'at 2026-11-29T10:00:00+01:00' }
  expect(named(JSON.stringify(body), '2026', 'TRUE', 'NULL', 'ADMIN')).toEqual(NOTHING)
  expect(named('{"trackingIds":["2026","true"]}', '2026', 'TRUE').named).toEqual(['2026', 'TRUE'])
})

test('a long body is searched at once', () => {
  const body = `{"note":"${'x'.repeat(2_000_000)} ${'a-1 '.repeat(100_000)}","id":"GONE0001"}`
  expect(named(body, 'GONE0001').named).toEqual(['GONE0001'])
})
