import { LRUCache } from 'lru-cache'
import type { Memory } from '../flow/ports.ts'

/** Creates an LRU cache of at most `entriesMax` values. */
export function createMemory<Value extends object | string | number>({ entriesMax }: { readonly entriesMax: number }): Memory<Value> {
  // Use `maxSize`, because with `max` the library allocates memory for all entries at once.
  return new LRUCache<string, Value>({ maxSize: entriesMax, sizeCalculation: () => 1 })
}
