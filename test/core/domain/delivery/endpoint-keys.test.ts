import { expect, test } from 'vitest'
import {
  changeHeaders,
  endOverlap,
  keysAfterUse,
  keysAt,
  keysChangeAtMs,
  onlyKey,
  replaceKey,
  resealKeys,
  rotateKeys,
  sealedTexts,
  shiftKeys,
} from '../../../../src/core/domain/delivery/endpoint-keys.ts'
import { DAY_MS } from '../../../support/runner/constants.ts'

const NOW = 1_000_000
const rotating = rotateKeys(onlyKey('old'), 'new', NOW)

test('O9: for 24 h the old key stays the current one, and then the next key takes over', () => {
  expect(rotating).toEqual({ current: 'old', next: { sealed: 'new', fromMs: NOW + DAY_MS } })
  expect(keysChangeAtMs(rotating)).toBe(NOW + DAY_MS)
  expect(keysAt(rotating, NOW + DAY_MS - 1)).toBe(rotating)
  expect(keysAt(rotating, NOW + DAY_MS)).toEqual(onlyKey('new', NOW))
  expect(keysChangeAtMs(onlyKey('new'))).toBe(Number.POSITIVE_INFINITY)
})

test('O9: a second rotation replaces the next key, not the current one that receivers have', () => {
  const again = rotateKeys(rotating, 'newer', NOW + 1000)
  expect(again).toEqual({ current: 'old', next: { sealed: 'newer', fromMs: NOW + 1000 + DAY_MS } })
  expect(rotateKeys(rotating, 'newer', NOW + DAY_MS).current).toBe('new')
})

test('O9: the overlap ends on an order, or when a receiver accepts the next key’s signature', () => {
  expect(endOverlap(rotating, NOW)).toEqual(onlyKey('new', NOW))
  expect(endOverlap(onlyKey('old'), NOW)).toBeNull()
  expect(endOverlap(rotating, NOW + DAY_MS)).toBeNull()
  expect(keysAfterUse(rotating, 'new')).toEqual(onlyKey('new', NOW))
  const again = rotateKeys(rotating, 'newer', NOW + 1000)
  expect(keysAfterUse(again, 'new')).toBe(again)
})

test('the values of fixed headers are changed by name, and a change of keys keeps them', () => {
  const headers = { authorization: 'sealed a', 'x-key': 'sealed b' }
  const keys = rotateKeys(changeHeaders(onlyKey('old'), headers), 'new', NOW)
  const after = [
    keys,
    keysAt(keys, NOW + DAY_MS),
    endOverlap(keys, NOW),
    keysAfterUse(keys, 'new'),
    shiftKeys(keys, 1),
    replaceKey(keys, 'x'),
  ]
  for (const one of after) expect(one?.headers).toEqual(headers)
  expect(changeHeaders(keys, { 'x-key': null, 'x-new': 'sealed c' }).headers).toEqual({ authorization: 'sealed a', 'x-new': 'sealed c' })
  expect(changeHeaders(keys, { authorization: null, 'x-key': null })).not.toHaveProperty('headers')
  expect(sealedTexts(keys)).toEqual(['old', 'new', 'sealed a', 'sealed b'])
  expect(resealKeys(keys, new Map([['sealed a', 'anew']])).headers).toEqual({ ...headers, authorization: 'anew' })
})
