import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { createMac } from '../../../../src/core/domain/ingest/signature.ts'

const hex = (text: string) => Buffer.from(text, 'hex')
const MESSAGE = Buffer.from('what is signed')

test('I1: the MAC agrees with the test cases of RFC 4231', () => {
  const cases: readonly (readonly [key: Buffer, message: Buffer, mac: string])[] = [
    [Buffer.alloc(20, 0x0b), Buffer.from('Hi There'), 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    [Buffer.from('Jefe'), Buffer.from('what do ya want for nothing?'), '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'],
    [Buffer.alloc(20, 0xaa), Buffer.alloc(50, 0xdd), '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe'],
    [
      hex('0102030405060708090a0b0c0d0e0f10111213141516171819'),
      Buffer.alloc(50, 0xcd),
      '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b',
    ],
    [
      Buffer.alloc(131, 0xaa),
      Buffer.from('Test Using Larger Than Block-Size Key - Hash Key First'),
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
    [
      Buffer.alloc(131, 0xaa),
      Buffer.from(
        'This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.',
      ),
      '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2',
    ],
  ]
  for (const [key, message, mac] of cases) expect(Buffer.from(createMac(key)(message), 'base64').toString('hex')).toBe(mac)
})

test('the MAC equals the platform’s, whatever the lengths of key and message', () => {
  const macOf = (key: Buffer, message: Buffer) => createHmac('sha256', key).update(message).digest('base64')
  const bytes = (length: number) => Buffer.from(Array.from({ length }, (_, at) => (at * 151 + length) % 256))
  for (const keyBytes of [0, 1, 31, 32, 63, 64, 65, 200]) {
    const key = bytes(keyBytes)
    const mac = createMac(key)
    for (const messageBytes of [0, 1, 54, 55, 56, 63, 64, 65, 450, 16_383, 16_384, 16_385, 262_144]) {
      const message = bytes(messageBytes)
      expect(mac(message), `a key of ${keyBytes} and a message of ${messageBytes} bytes`).toBe(macOf(key, message))
    }
  }
})

test('a message may come in parts, and texts count as UTF-8 bytes', () => {
  const mac = createMac(Buffer.from('a-key'))
  const whole = Buffer.concat([Buffer.from('Göteborg.'), MESSAGE])
  expect(mac('Göteborg', '.', MESSAGE)).toBe(mac(whole))
  expect(mac('Göteborg'.repeat(3000), MESSAGE)).toBe(mac(Buffer.concat([Buffer.from('Göteborg'.repeat(3000)), MESSAGE])))
})

test('MACs with different keys do not influence each other', () => {
  const [one, other] = [createMac(Buffer.from('one')), createMac(Buffer.from('other'))]
  const first = one(MESSAGE)
  other(Buffer.alloc(5000, 1))
  expect(one(MESSAGE)).toBe(first)
  expect(other(MESSAGE)).not.toBe(first)
})
