import { LRUCache } from 'lru-cache'
import type { AnswerCache, CachedAnswer } from '../flow/ports.ts'

/** What an answer costs beside its body: key, tag, index and the cache's own bookkeeping. */
const OVERHEAD_BYTES = 512

/** Encoded answers, at most `bytesMax` of them; 0 keeps none, for a relay that is not the only one to write its store. */
export function createAnswerCache({ bytesMax }: { readonly bytesMax: number }): AnswerCache {
  if (bytesMax === 0) return { get: () => undefined, set: () => {}, invalidate: () => {} }
  const keysOf = new Map<number, Set<string>>()
  const cache = new LRUCache<string, CachedAnswer>({
    maxSize: bytesMax,
    sizeCalculation: (answer) => answer.body.byteLength + OVERHEAD_BYTES,
    dispose: ({ parcelId }, key) => {
      const keys = keysOf.get(parcelId)
      keys?.delete(key)
      if (keys?.size === 0) keysOf.delete(parcelId)
    },
  })
  return {
    get: (key) => cache.get(key),
    set(key, answer) {
      cache.set(key, answer)
      // An answer larger than the whole cache is not kept.
      if (!cache.has(key)) return
      const keys = keysOf.get(answer.parcelId) ?? new Set()
      keysOf.set(answer.parcelId, keys.add(key))
    },
    invalidate(parcelIds) {
      for (const parcelId of parcelIds) for (const key of keysOf.get(parcelId) ?? []) cache.delete(key)
    },
  }
}
