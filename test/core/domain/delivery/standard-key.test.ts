import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { isStandardKey } from '../../../../src/core/domain/delivery/endpoint-keys.ts'

function libraryTakes(key: string): boolean {
  try {
    new Webhook(key)
    return true
  } catch {
    return false
  }
}

test.each([
  ['Base64', 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3', true],
  ['Base64 after whsec_', 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3', true],
  ['Base64 without its padding', 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY', true],
  ['plain text with hyphens', 'a-shared-key-of-some-length', false],
  ['plain text after whsec_', 'whsec_a-shared-key-of-some-length', false],
  ['the prefix alone', 'whsec_', false],
  ['nothing', '', false],
] as const)('the relay and the library agree whether this is a Standard Webhooks key: %s', (_name, key, isOne) => {
  expect([isStandardKey(key), libraryTakes(key)]).toEqual([isOne, isOne])
})

test('a key that the library of Standard Webhooks refuses is not accepted either', () => {
  const base64ish = fc.string({ unit: fc.constantFrom(...'ABab01+/=_-é '), maxLength: 24 })
  const keys = fc.oneof(
    base64ish,
    base64ish.map((text) => `whsec_${text}`),
    fc.base64String(),
  )
  fc.assert(
    fc.property(keys, (key) => !isStandardKey(key) || libraryTakes(key)),
    { numRuns: 2000 },
  )
})
