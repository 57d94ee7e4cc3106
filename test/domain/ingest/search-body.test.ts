import { expect, test } from 'vitest'
import { ERASED_WORD, scrubText } from '../../../src/domain/admin/erasure.ts'
import { wordsInBody } from '../../../src/domain/ingest/search-body.ts'

test.each([
  ['plain text', Buffer.from('GONE0001')],
  ['lower case', Buffer.from('{"trackingIds":["gone0001"]}')],
  ['a JSON escape', Buffer.from('{"id":"\\u0047ONE0001"}')],
  ['a line break before it', Buffer.from('"note\\nGONE0001"')],
  ['UTF-16', Buffer.from('"GONE0001"', 'utf16le')],
  ['bytes that are no text', Buffer.concat([Buffer.from([0xff, 0xfe, 0x80]), Buffer.from('GONE0001'), Buffer.from([0xc3])])],
])('an identifier is found in %s', (_form, body) => {
  expect(wordsInBody(body).has('GONE0001')).toBe(true)
})

test('a part of a longer word is not an identifier', () => {
  expect([...wordsInBody(Buffer.from('XGONE0001 GONE00012 abc'))]).toEqual(['XGONE0001', 'GONE00012'])
})

test('identifiers in upper or lower case are removed from a text, and longer words stay', () => {
  expect(scrubText('{"id":"gone0001","x":"GONE00012"}', new Set(['GONE0001']))).toBe(`{"id":"${ERASED_WORD}","x":"GONE00012"}`)
  expect(scrubText('nothing', new Set(['GONE0001']))).toBeNull()
})
