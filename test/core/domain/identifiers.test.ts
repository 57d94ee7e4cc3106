import fc from 'fast-check'
import { expect, test } from 'vitest'
import { describeBadIdentifier, parseIdentifier, parseTypedIdentifier } from '../../../src/core/domain/identifiers.ts'

test.each([
  [' ab123456789se ', 'AB123456789SE'],
  ['1001', '1001'],
  ['A'.repeat(40), 'A'.repeat(40)],
])('1.1: an identifier is trimmed and upper-cased: %j', (text, identifier) => {
  expect(parseIdentifier(text)).toBe(identifier)
})

test.each([
  '',
  'ABC',
  'A'.repeat(41),
  'AB-1234',
  'AB 1234',
  '__proto__',
  'åäö1234',
  '１２３４',
  'ıııı',
  'AB\u00001234',
  1001,
  null,
  undefined,
  {},
])('1.1: an identifier other than 4 to 40 ASCII letters and digits is refused: %j', (text) => {
  expect(parseIdentifier(text)).toBeNull()
})

test('1.1: a normalised identifier stays the same', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const identifier = parseIdentifier(text)
      if (identifier !== null) expect(parseIdentifier(identifier)).toBe(identifier)
    }),
  )
})

test.each([
  ['AB 123 456', 'Character 3 of this is a space.'],
  ['  AB-123', 'Character 3 of this is a hyphen.'],
  ['AB\u200b1234', 'Character 3 of this is U+200B, which is invisible.'],
  ['<script>', 'Character 1 of this is U+003C.'],
  ['AB1234\u{1f4e6}', 'Character 7 of this is U+1F4E6.'],
  ['ABC', 'This has 3.'],
])('1.1: the refusal of an identifier says which character is wrong: %j', (text, expected) => {
  expect(describeBadIdentifier(text)).toBe(`An identifier is 4 to 40 letters and digits. ${expected}`)
})

test.each(['AB 730 000 001 SE', 'AB-730-000-001-SE', ' ab\u00a0730\u200b000\u2013001 se\n', 'AB730000001SE', 'AB730000 001SE'])(
  '1.1: a typed identifier is read without spaces, hyphens and invisible marks: %j',
  (text) => {
    expect(parseTypedIdentifier(text)).toBe('AB730000001SE')
  },
)

test.each([
  'AB730000001SE AB730000002SE',
  'AB730000001SE\tAB730000002SE',
  '1001\r1002',
  '1001\n1002',
  '1001\u20281002',
  '370000000000000001 370000000000000002',
])('1.1: several identifiers in one typed text are none: %j', (text) => {
  expect(parseTypedIdentifier(text)).toBeNull()
})
