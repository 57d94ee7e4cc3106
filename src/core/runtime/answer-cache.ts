import { LRUCache } from 'lru-cache'
import type { AnswerCache, CachedAnswer, Memory } from '../flow/ports.ts'
import { type ChangeTable, hasChanged, markOf } from './threads/change-table.ts'

/** Creates an LRU cache of at most `entriesMax` values. */
export function createMemory<Value extends object | string | number>({ entriesMax }: { readonly entriesMax: number }): Memory<Value> {
  // Use `maxSize`, because with `max` the library allocates memory for all entries at once.
  return new LRUCache<string, Value>({ maxSize: entriesMax, sizeCalculation: () => 1 })
}

/** The estimated memory of a cached answer without its body: its key, its other members, and the cache's bookkeeping. */
const OVERHEAD_BYTES = 512

/**
 * Creates a cache of encoded answers, of at most `bytesMax` bytes; 0: no cache. `get` ignores an answer whose parcel has changed since it was
 * cached, but does not see changes by other replicas. So the caller must compare versions before it serves an answer.
 */
export function createAnswerCache({ bytesMax, changes }: { readonly bytesMax: number; readonly changes: ChangeTable }): AnswerCache {
  const mark = () => markOf(changes)
  if (bytesMax === 0) return { get: () => undefined, mark, set: () => {} }
  const cache = new LRUCache<string, { readonly answer: CachedAnswer; readonly mark: bigint }>({
    maxSize: bytesMax,
    sizeCalculation: ({ answer }) => answer.body.byteLength + OVERHEAD_BYTES,
  })
  return {
    get(key) {
      const kept = cache.get(key)
      return kept === undefined || hasChanged(changes, kept.answer.parcelId, kept.mark) ? undefined : kept.answer
    },
    mark,
    set: (key, answer, mark) => void cache.set(key, { answer, mark }),
  }
}
