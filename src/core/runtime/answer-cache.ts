import { LRUCache } from 'lru-cache'
import type { AnswerCache, CachedAnswer, Memory } from '../flow/ports.ts'

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

/** Shows which parcels have changed, in memory that the threads share. The writer notes each change, and caches see it without a message. */
export type ChangeTable = ReturnType<typeof createChangeTable>

/** The number of slots, a power of two. Several parcels share a slot, and a change of one parcel counts as a change of all of them. */
const SLOTS = 256 * 1024

export function createChangeTable() {
  const shared = (length: number) => new BigInt64Array(new SharedArrayBuffer(length * BigInt64Array.BYTES_PER_ELEMENT))
  return {
    count: shared(1),
    /** The number of the last change in each slot. Each parcel belongs to one slot. */
    last: shared(SLOTS),
  }
}

/** Returns the number of the last change, a mark for `hasChanged`. Call it before reading the parcel from the store. */
export function markOf({ count }: ChangeTable): bigint {
  return Atomics.load(count, 0)
}

/** Whether the parcel, or another parcel of its slot, has changed since `sinceMark`. */
export function hasChanged({ last }: ChangeTable, parcelId: number, sinceMark: bigint): boolean {
  return Atomics.load(last, slotOf(parcelId)) > sinceMark
}

/** Must be called after the commit of the changes, before the senders are answered. */
export function tellChanged({ count, last }: ChangeTable, parcelIds: readonly number[]): void {
  if (parcelIds.length === 0) return
  const change = Atomics.add(count, 0, 1n) + 1n
  for (const parcelId of parcelIds) {
    const slot = slotOf(parcelId)
    let known = Atomics.load(last, slot)
    // Another thread may write at the same time. Never replace the number of a later change.
    while (known < change) {
      const found = Atomics.compareExchange(last, slot, known, change)
      if (found === known) break
      known = found
    }
  }
}

function slotOf(parcelId: number): number {
  return parcelId & (SLOTS - 1)
}
