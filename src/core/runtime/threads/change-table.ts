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
