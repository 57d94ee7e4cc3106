import { expect, test } from 'vitest'
import { createVault } from '../../../src/core/ops/vault.ts'

const keyOf = (byte: number) => Buffer.alloc(32, byte)
const vaultOf = (...keys: readonly [Uint8Array, ...Uint8Array[]]) => createVault({ list: () => keys, first: () => keys[0] })
const KEY = 'the-key-of-the-endpoint'

test('W4: a sealed key is not readable, and opens only for its endpoint', async () => {
  const vault = vaultOf(keyOf(1))
  const sealed = await vault.seal(KEY, '7')
  const shown = sealed.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'))
  expect([sealed, ...shown].some((text) => text.includes(KEY))).toBe(false)
  expect(await vault.open(sealed, '7')).toBe(KEY)
  expect(await vault.open(sealed, '8')).toBeNull()
  expect(await vault.seal(KEY, '7')).not.toBe(sealed)
})

test('a vault seals with its first key, and opens what any of its keys has sealed', async () => {
  const sealed = await vaultOf(keyOf(1)).seal(KEY, '7')
  expect(await vaultOf(keyOf(2), keyOf(1)).open(sealed, '7')).toBe(KEY)
  expect(await vaultOf(keyOf(2)).open(sealed, '7')).toBeNull()
  const resealed = await vaultOf(keyOf(2), keyOf(1)).seal(KEY, '7')
  expect(await vaultOf(keyOf(1)).open(resealed, '7')).toBeNull()
})

test.each(['', 'x', 'a.b.c.d.e'])('a text that was never sealed (%j) does not open', async (text) => {
  expect(await vaultOf(keyOf(1)).open(text, '7')).toBeNull()
})

test('a key that was tampered with does not open', async () => {
  const vault = vaultOf(keyOf(1))
  const [header = '', , iv = '', text = '', tag = ''] = (await vault.seal(KEY, '7')).split('.')
  const other = Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(header, 'base64url').toString()), endpoint: '8' })).toString(
    'base64url',
  )
  expect(await vault.open([other, '', iv, text, tag].join('.'), '8')).toBeNull()
})
