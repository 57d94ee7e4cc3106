import { expect, test } from 'vitest'
import { parseLanguageTag } from '../../../src/core/domain/languages.ts'

test.each([
  ['sv', 'sv'],
  ['sv-SE', 'sv-se'],
  ['sv_SE', 'sv-se'],
  ['zh_Hant_TW', 'zh-hant-tw'],
  ['zh_Hant-TW', 'zh-hant-tw'],
])('4.1: an underscore in a language tag is a hyphen: %s is %s', (text, tag) => {
  expect(parseLanguageTag(text)).toBe(tag)
})

test.each(['', '_', 'sv_', '_sv', 'sv__SE', 'sv_-SE', 'sv.SE', 'sv_SE.UTF-8', 'sv SE', 'svenskaspråket', 7, null])(
  '4.1: %j is no language tag',
  (text) => {
    expect(parseLanguageTag(text)).toBeNull()
  },
)
