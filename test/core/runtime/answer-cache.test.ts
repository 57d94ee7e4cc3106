import { expect, test } from 'vitest'
import type { CachedAnswer } from '../../../src/core/flow/ports.ts'
import { createAnswerCache, createChangeTable, createMemory, tellChanged } from '../../../src/core/runtime/answer-cache.ts'

const anAnswer = (parcelId: number, bytes = 1000): CachedAnswer => ({
  parcelId,
  version: 0,
  body: Buffer.alloc(bytes),
  etag: '"x"',
  contentLanguage: 'en',
  lastSeenAtMs: 0,
})

function openCache(bytesMax: number) {
  const changes = createChangeTable()
  const cache = createAnswerCache({ bytesMax, changes })
  return {
    ...cache,
    changed: (parcelIds: readonly number[]) => tellChanged(changes, parcelIds),
    keep: (key: string, answer: CachedAnswer) => cache.set(key, answer, cache.mark()),
  }
}

test('a cache keeps at most its limit of bytes, and drops the least recently used answers first', () => {
  const cache = openCache(5000)
  for (const parcelId of [1, 2, 3]) cache.keep(`key ${parcelId}`, anAnswer(parcelId))
  cache.get('key 1')
  cache.keep('key 4', anAnswer(4))
  expect([1, 2, 3, 4].filter((parcelId) => cache.get(`key ${parcelId}`) !== undefined)).toEqual([1, 3, 4])
  cache.keep('large', anAnswer(5, 6000))
  expect(cache.get('large')).toBeUndefined()
})

test('a cache forgets all answers of a parcel, even replaced ones, and none of other parcels', () => {
  const cache = openCache(100_000)
  cache.keep('a', anAnswer(1))
  cache.keep('b', anAnswer(1))
  cache.keep('c', anAnswer(2))
  cache.keep('b', anAnswer(2))
  cache.changed([1, 9])
  expect(['a', 'b', 'c'].map((key) => cache.get(key)?.parcelId)).toEqual([undefined, 2, 2])
  cache.keep('c', anAnswer(2))
  cache.changed([2])
  expect(['a', 'b', 'c'].map((key) => cache.get(key)?.parcelId)).toEqual([undefined, undefined, undefined])
})

test('an answer that was read before a change of its parcel is not served after the change', () => {
  const cache = openCache(100_000)
  const before = cache.mark()
  cache.changed([1])
  cache.set('a', anAnswer(1), before)
  cache.set('b', anAnswer(2), before)
  expect(['a', 'b'].map((key) => cache.get(key)?.parcelId)).toEqual([undefined, 2])
})

test('a cache with a limit of 0 bytes keeps nothing', () => {
  const cache = openCache(0)
  cache.keep('a', anAnswer(1))
  cache.changed([1])
  expect(cache.get('a')).toBeUndefined()
})

test('a memory drops the least recently used value', () => {
  const memory = createMemory<number>({ entriesMax: 2 })
  memory.set('a', 1)
  memory.set('b', 2)
  memory.get('a')
  memory.set('c', 3)
  expect(['a', 'b', 'c'].map((key) => memory.get(key))).toEqual([1, undefined, 3])
})
