import { expect, test } from 'vitest'
import { createBody, giveBack } from '../../../../src/core/http/server/raw-body.ts'

const KB = 1024
/** Makes a piece of a body in separate memory, as the platform does. */
const piece = (bytes: number, fill: number) => Buffer.from(new ArrayBuffer(bytes)).fill(fill)

test('a body of one piece is returned without a copy, and several pieces are joined in order', () => {
  const one = createBody(256 * KB)
  const only = piece(2000, 1)
  one.add(only)
  expect(one.bytes()).toBe(only)
  const several = createBody(256 * KB)
  const pieces = [piece(40 * KB, 1), piece(10, 2), piece(64 * KB, 3), piece(1, 4)]
  const expected = Buffer.concat(pieces)
  for (const each of pieces) several.add(each)
  expect(several.bytes().equals(expected)).toBe(true)
  expect(createBody(10).bytes()).toHaveLength(0)
})

test('F8: copied pieces and discarded bodies release their memory at once', async () => {
  const body = createBody(256 * KB)
  const pieces = [piece(64 * KB, 1), piece(64 * KB, 2)]
  for (const each of pieces) body.add(each)
  await Promise.resolve()
  expect(pieces.map(({ buffer }) => buffer.byteLength)).toEqual([0, 0])
  const kept = body.bytes()
  expect(kept).toHaveLength(128 * KB)
  body.forget()
  await Promise.resolve()
  expect(kept).toHaveLength(0)
})

test('giving back a part of a buffer does not release the buffer', () => {
  const whole = piece(128 * KB, 7)
  giveBack(whole.subarray(0, 64 * KB))
  expect(whole).toHaveLength(128 * KB)
  giveBack(whole)
  expect(whole).toHaveLength(0)
})
