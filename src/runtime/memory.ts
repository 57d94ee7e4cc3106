import { LRUCache } from 'lru-cache'
import type { Memory } from '../flow/ports.ts'

/** An LRU cache of at most `entriesMax` values. */
export function createMemory<Value extends object | string | number>({ entriesMax }: { readonly entriesMax: number }): Memory<Value> {
  // With `max` instead of `maxSize` the library would allocate room for all entries at every start.
  return new LRUCache<string, Value>({ maxSize: entriesMax, sizeCalculation: () => 1 })
}
