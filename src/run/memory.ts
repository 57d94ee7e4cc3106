import { LRUCache } from 'lru-cache'
import type { Memory } from '../flow/ports.ts'

/** A memory of at most `entriesMax` values; the least recently used one is forgotten first. */
export function createMemory<Value extends object | string | number>({ entriesMax }: { readonly entriesMax: number }): Memory<Value> {
  return new LRUCache<string, Value>({ max: entriesMax })
}
