/**
 * Which parcels have changed, in memory that the threads share: the writer marks them and a cache sees it without a message. A plain value, so
 * that it can be passed to a thread.
 */
export interface ChangeTable {
  /** The number of changes so far. */
  readonly count: BigInt64Array
  /** The last change of the parcels that share a slot. */
  readonly last: BigInt64Array
}

/** The number of slots, a power of two. When parcels share a slot, a change of one counts for all of them. */
const PLACES = 256 * 1024

export function createChangeTable(): ChangeTable {
  const shared = (length: number) => new BigInt64Array(new SharedArrayBuffer(length * BigInt64Array.BYTES_PER_ELEMENT))
  return { count: shared(1), last: shared(PLACES) }
}

/** The current change number; take it before reading the store. */
export function markOf({ count }: ChangeTable): bigint {
  return Atomics.load(count, 0)
}

/** Whether the parcel may have changed since. It may report a change that did not happen, but never misses one. */
export function hasChanged({ last }: ChangeTable, parcelId: number, sinceMark: bigint): boolean {
  return Atomics.load(last, placeOf(parcelId)) > sinceMark
}

/** Call after the commit of the changes and before it is acknowledged. */
export function tellChanged({ count, last }: ChangeTable, parcelIds: readonly number[]): void {
  if (parcelIds.length === 0) return
  const change = Atomics.add(count, 0, 1n) + 1n
  for (const parcelId of parcelIds) {
    const place = placeOf(parcelId)
    let known = Atomics.load(last, place)
    // Another thread may write at the same time; the later change must stay.
    while (known < change) {
      const found = Atomics.compareExchange(last, place, known, change)
      if (found === known) break
      known = found
    }
  }
}

function placeOf(parcelId: number): number {
  return parcelId & (PLACES - 1)
}
