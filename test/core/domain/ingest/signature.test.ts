import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { createVerifier, isSignature, signBody } from '../../../../src/core/domain/ingest/signature.ts'

const KEY = 'a-shared-key-of-some-length'
const BODY = Buffer.from('{"status":"Ingested"}\n')
const verifier = createVerifier([KEY])

test('I1: the MAC agrees with RFC 4231 test cases 1 and 2', () => {
  const cases = [
    ['\x0b'.repeat(20), Buffer.from('Hi There'), 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    ['Jefe', Buffer.from('what do ya want for nothing?'), '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'],
  ] as const
  for (const [key, body, mac] of cases) {
    expect(Buffer.from(signBody(body, key), 'base64').toString('hex')).toBe(mac)
    expect(createVerifier([key]).verify(body, signBody(body, key))).toBe(0)
  }
})

test('a key counts as its UTF-8 bytes', () => {
  const mac = createHmac('sha256', Buffer.from('nyckel-åäö-ärlig', 'utf8')).update(BODY).digest('base64')
  expect(createVerifier(['nyckel-åäö-ärlig']).verify(BODY, mac)).toBe(0)
})

test('I10: any of several keys matches, and the result says which', () => {
  const both = createVerifier(['the-old-shared-key', 'the-new-shared-key'])
  expect(both.verify(BODY, signBody(BODY, 'the-old-shared-key'))).toBe(0)
  expect(both.verify(BODY, signBody(BODY, 'the-new-shared-key'))).toBe(1)
  expect(both.verify(BODY, signBody(BODY, 'another-shared-key'))).toBeNull()
  expect(createVerifier([]).verify(BODY, signBody(BODY, ''))).toBeNull()
})

test('I5: only canonical padded Base64 of 32 bytes is a signature', () => {
  // This key gives a MAC with all the characters that the lax forms replace.
  const key = Array.from({ length: 5000 }, (_, index) => `key-number-${index}`).find((candidate) =>
    /\+.*\//.test(signBody(BODY, candidate)),
  )
  if (key === undefined) throw new Error('no such key')
  const good = signBody(BODY, key)
  const lax = createVerifier([key])
  expect(lax.verify(BODY, good)).toBe(0)
  const last = good.charAt(42)
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const variants = [
    good.replaceAll('+', '-').replaceAll('/', '_'),
    good.slice(0, 43),
    `${good}=`,
    `${good.slice(0, 20)} ${good.slice(20)}`,
    `${good.slice(0, 20)}\n${good.slice(20)}`,
    `${good}\n`,
    ` ${good}`,
    `${good}, x`,
    `${good}junk`,
    `${good},${good}`,
    `${good.slice(0, 42)}${alphabet.charAt(alphabet.indexOf(last) + 1)}=`,
    Buffer.from(good, 'base64').toString('hex'),
    `sha256=${good}`,
    `${good.slice(0, 43)}é`,
    String.fromCharCode(good.charCodeAt(0) + 0x100) + good.slice(1),
    `"${good}"`,
    good.toLowerCase(),
    '',
    ' ',
    'A'.repeat(10_240),
    Buffer.alloc(31).toString('base64'),
    Buffer.alloc(33).toString('base64'),
    good.replace('=', '%3D'),
  ]
  expect(variants.filter((variant) => lax.verify(BODY, variant) !== null)).toEqual([])
  expect(isSignature(good)).toBe(true)
})

test('I6: a MAC does not match after one bit of the MAC or of the body is flipped', () => {
  const mac = Buffer.from(signBody(BODY, KEY), 'base64')
  const flipped = (bytes: Buffer, bit: number) => bytes.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))
  for (let bit = 0; bit < 256; bit += 1) expect(verifier.verify(BODY, Buffer.from(flipped(mac, bit)).toString('base64'))).toBeNull()
  for (let bit = 0; bit < BODY.length * 8; bit += 1) expect(verifier.verify(flipped(BODY, bit), mac.toString('base64'))).toBeNull()
  expect(verifier.verify(BODY, mac.toString('base64'))).toBe(0)
})

test('I7: only the exact bytes count, not the JSON that they mean', () => {
  const signature = signBody(BODY, KEY)
  for (const other of ['{"status": "Ingested"}\n', '{"status":"Ingested"}\r\n', '{"status":"Ingested"}', '\ufeff{"status":"Ingested"}\n']) {
    expect(verifier.verify(Buffer.from(other), signature)).toBeNull()
  }
})

test('I8: another hash, or the key decoded in another way, does not match', () => {
  const key = 'c2hhcmVkLWtleS1ieXRlcw==é'
  const strict = createVerifier([key])
  const sign = (hash: string, secret: string | Buffer) => createHmac(hash, secret).update(BODY).digest('base64')
  const forged = [
    sign('sha1', key),
    sign('sha512', key),
    createHmac('sha512', key).update(BODY).digest().subarray(0, 32).toString('base64'),
    sign('sha256', Buffer.from(key, 'base64')),
    sign('sha256', key.normalize('NFD')),
    sign('sha256', `${key}\n`),
  ]
  expect(forged.map((signature) => strict.verify(BODY, signature))).toEqual(forged.map(() => null))
  expect(strict.verify(BODY, sign('sha256', key))).toBe(0)
})
