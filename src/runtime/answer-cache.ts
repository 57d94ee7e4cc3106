import { LRUCache } from 'lru-cache'
import type { AnswerCache, CachedAnswer } from '../flow/history/ports.ts'
import { type ChangeTable, hasChanged, markOf } from './threads/change-table.ts'

/** The memory that an answer takes in addition to its body: key, tag, mark and the cache's bookkeeping. */
const OVERHEAD_BYTES = 512

interface Kept {
  readonly answer: CachedAnswer
  readonly mark: bigint
}

/**
 * Keeps encoded answers, at most `bytesMax` bytes; 0 keeps none. A stale answer stays until it is looked up, and is then ignored. The cache
 * does not see changes by other relays on the same store, so the caller compares versions before it serves an answer.
 */
export function createAnswerCache({ bytesMax, changes }: { readonly bytesMax: number; readonly changes: ChangeTable }): AnswerCache {
  const mark = () => markOf(changes)
  if (bytesMax === 0) return { get: () => undefined, mark, set: () => {} }
  const cache = new LRUCache<string, Kept>({
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
