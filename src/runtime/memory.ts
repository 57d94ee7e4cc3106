import { LRUCache } from 'lru-cache'
import type { Memory } from '../flow/ports.ts'

/** A memory of at most `entriesMax` values; the least recently used one is forgotten first. */
export function createMemory<Value extends object | string | number>({ entriesMax }: { readonly entriesMax: number }): Memory<Value> {
  // Given as a size: room for a number of entries would be laid out whole, at every start.
  return new LRUCache<string, Value>({ maxSize: entriesMax, sizeCalculation: () => 1 })
}
