/**
 * What a flow remembers for a while: bounded, so any value may be gone at any time and losing it costs only work.
 * A `Map` is one that never forgets.
 */
export interface Memory<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): unknown
  delete(key: string): unknown
}
