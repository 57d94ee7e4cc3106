import { expect, test } from 'vitest'
import { createMemory } from '../../../src/core/runtime/answer-cache.ts'

test('a full memory drops the least recently used value first', () => {
  const memory = createMemory<number>({ entriesMax: 3 })
  for (const [at, key] of ['a', 'b', 'c'].entries()) memory.set(key, at)
  memory.get('a')
  memory.set('d', 3)
  expect(['a', 'b', 'c', 'd'].map((key) => memory.get(key))).toEqual([0, undefined, 2, 3])
})
