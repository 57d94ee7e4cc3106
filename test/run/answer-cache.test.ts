import { expect, test } from 'vitest'
import type { CachedAnswer } from '../../src/flow/ports.ts'
import { createAnswerCache } from '../../src/run/answer-cache.ts'
import { createMemory } from '../../src/run/memory.ts'

const anAnswer = (parcelId: number, bytes = 1000): CachedAnswer => ({
  parcelId,
  body: Buffer.alloc(bytes),
  etag: '"x"',
  contentLanguage: 'en',
  heardAtMs: 0,
})

test('keeps at most its bytes, the least recently used answers going first', () => {
  const cache = createAnswerCache({ bytesMax: 5000 })
  for (const parcelId of [1, 2, 3]) cache.set(`key ${parcelId}`, anAnswer(parcelId))
  cache.get('key 1')
  cache.set('key 4', anAnswer(4))
  expect([1, 2, 3, 4].filter((parcelId) => cache.get(`key ${parcelId}`) !== undefined)).toEqual([1, 3, 4])
  cache.set('large', anAnswer(5, 6000))
  expect(cache.get('large')).toBeUndefined()
})

test('forgets all answers of a parcel, and only those, also after one was replaced', () => {
  const cache = createAnswerCache({ bytesMax: 100_000 })
  cache.set('a', anAnswer(1))
  cache.set('b', anAnswer(1))
  cache.set('c', anAnswer(2))
  cache.set('b', anAnswer(2))
  cache.invalidate([1, 9])
  expect(['a', 'b', 'c'].map((key) => cache.get(key)?.parcelId)).toEqual([undefined, 2, 2])
  cache.set('c', anAnswer(2))
  cache.invalidate([2])
  expect(['a', 'b', 'c'].map((key) => cache.get(key)?.parcelId)).toEqual([undefined, undefined, undefined])
})

test('a cache of no bytes keeps nothing', () => {
  const cache = createAnswerCache({ bytesMax: 0 })
  cache.set('a', anAnswer(1))
  cache.invalidate([1])
  expect(cache.get('a')).toBeUndefined()
})

test('a memory forgets the least recently used value', () => {
  const memory = createMemory<number>({ entriesMax: 2 })
  memory.set('a', 1)
  memory.set('b', 2)
  memory.get('a')
  memory.set('c', 3)
  expect(['a', 'b', 'c'].map((key) => memory.get(key))).toEqual([1, undefined, 3])
})
