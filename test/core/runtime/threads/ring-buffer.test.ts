import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { IncomingPush } from '../../../../src/core/domain/ingest/inbox.ts'
import { parsePush } from '../../../../src/core/domain/ingest/parse-push.ts'
import { createRingBuffer, openConsumer, openProducer } from '../../../../src/core/runtime/threads/ring-buffer.ts'
import { pushBody } from '../../../support/history/builders.ts'

const body = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.record({ location: fc.string({ unit: 'grapheme' }), status: fc.constantFrom('Created', 'På väg') }).map(pushBody),
)
const push = fc
  .record({ body, contentEncoding: fc.option(fc.string({ unit: 'grapheme', maxLength: 9 })), receivedAtMs: fc.nat(), keyIndex: fc.nat(3) })
  .map(parsePush)
type Step = { readonly put: IncomingPush | 'elsewhere' } | { readonly take: number }
const step = fc.oneof<fc.Arbitrary<Step>[]>(
  fc.record({ put: fc.oneof<fc.Arbitrary<IncomingPush | 'elsewhere'>[]>(push, push, push, fc.constant('elsewhere')) }),
  fc.record({ take: fc.nat(4) }),
)

test('entries are read unchanged and in order, however often the ring wraps around', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const ring = createRingBuffer(4096)
      const inlet = openProducer(ring)
      const elsewhere: string[] = []
      const outlet = openConsumer(ring, () => elsewhere.shift())
      const expected: (IncomingPush | string)[] = []
      const check = (most: number) => {
        expect(outlet.count()).toBe(expected.length)
        expect(outlet.take(most)).toEqual(expected.splice(0, most))
      }
      for (const [at, one] of steps.entries()) {
        if ('take' in one) check(one.take)
        else if (one.put !== 'elsewhere' && inlet.put(one.put)) expected.push(one.put)
        else if (one.put === 'elsewhere' && inlet.putByMessage()) {
          elsewhere.push(String(at))
          expected.push(String(at))
        } else expect(expected, 'only what is not empty can be full').not.toEqual([])
      }
      check(Number.POSITIVE_INFINITY)
    }),
    { numRuns: 400 },
  )
})

const event = (location: string) => parsePush({ body: pushBody({ location }), contentEncoding: null, receivedAtMs: 1, keyIndex: 0 })

test('an entry that does not fit is refused, and fits after another was read', () => {
  const ring = createRingBuffer(4096)
  const inlet = openProducer(ring)
  const outlet = openConsumer(ring, () => undefined)
  const put: IncomingPush[] = []
  for (let at = 0; inlet.put(event(`place ${at}`)); at++) put.push(event(`place ${at}`))
  expect(put.length).toBeGreaterThan(2)
  expect(outlet.take(2)).toEqual(put.slice(0, 2))
  expect(inlet.put(event('the next'))).toBe(true)
  expect(outlet.take(99)).toEqual([...put.slice(2), event('the next')])
})

test('entries are copies that later entries do not change', () => {
  const ring = createRingBuffer(2048)
  const inlet = openProducer(ring)
  const outlet = openConsumer(ring, () => undefined)
  inlet.put(event('first'))
  const [first] = outlet.take(1)
  for (let at = 0; at < 5; at++) {
    expect(inlet.put(event(`other ${at}`))).toBe(true)
    outlet.take(1)
  }
  expect(first).toEqual(event('first'))
})

test('the reader waits for an entry sent as a message, and no later entry overtakes it', () => {
  const ring = createRingBuffer(4096)
  const inlet = openProducer(ring)
  const elsewhere: string[] = []
  const outlet = openConsumer(ring, () => elsewhere.shift())
  inlet.put(event('before'))
  inlet.putByMessage()
  inlet.put(event('after'))
  expect(outlet.take(9)).toEqual([event('before')])
  expect(outlet.take(9)).toEqual([])
  elsewhere.push('poll')
  expect(outlet.take(9)).toEqual(['poll', event('after')])
})

test('the producer sees how often the consumer has read, even if nothing was there', () => {
  const ring = createRingBuffer(1024)
  const inlet = openProducer(ring)
  const outlet = openConsumer(ring, () => undefined)
  expect(inlet.reads()).toBe(0)
  outlet.take(1)
  outlet.take(1)
  expect(inlet.reads()).toBe(2)
})

test('a repeated event arrives unchanged, however many others came in between', () => {
  const ring = createRingBuffer(64 * 1024)
  const inlet = openProducer(ring)
  const outlet = openConsumer(ring, () => undefined)
  const pass = (location: string) => {
    expect(inlet.put(event(location))).toBe(true)
    expect(outlet.take(1)).toEqual([event(location)])
  }
  for (let at = 0; at < 10_000; at++) {
    pass(`place ${at}`)
    if (at % 50 === 0) for (const back of [1, 40, 4095, 4096, 5000]) pass(`place ${Math.max(0, at - back)}`)
  }
  const long = 'far '.repeat(1000)
  for (const location of [long, 'near', long, 'near']) pass(location)
})

test('an entry without room leaves the encoder unchanged', () => {
  const ring = createRingBuffer(2048)
  const inlet = openProducer(ring)
  const outlet = openConsumer(ring, () => undefined)
  while (inlet.put(event('first')));
  expect(inlet.put(event('second'))).toBe(false)
  outlet.take(99)
  for (let at = 0; at < 3; at++) {
    expect(inlet.put(event('second'))).toBe(true)
    expect(outlet.take(99)).toEqual([event('second')])
  }
})
