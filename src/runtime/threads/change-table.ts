/**
 * Which parcels have changed, in memory that threads share: the one that commits says it, and one that keeps answers sees it without a word
 * between them. A plain value, so it can be handed to a thread.
 */
export interface ChangeTable {
  /** How many changes there were. */
  readonly count: BigInt64Array
  /** The last change of the parcels that share a place. */
  readonly last: BigInt64Array
}

/** Parcels that share a place are taken for changed with each other; so many one after the other have places of their own. A power of two. */
const PLACES = 256 * 1024

export function createChangeTable(): ChangeTable {
  const shared = (length: number) => new BigInt64Array(new SharedArrayBuffer(length * BigInt64Array.BYTES_PER_ELEMENT))
  return { count: shared(1), last: shared(PLACES) }
}

/** As of now: to be taken before the store is read. */
export function markOf({ count }: ChangeTable): bigint {
  return Atomics.load(count, 0)
}

/** Whether anything was said of the parcel since. It may say so of one that did not change, never the other way round. */
export function hasChanged({ last }: ChangeTable, parcelId: number, sinceMark: bigint): boolean {
  return Atomics.load(last, placeOf(parcelId)) > sinceMark
}

/** To be called after what changed them is committed, and before that is acknowledged. */
export function tellChanged({ count, last }: ChangeTable, parcelIds: readonly number[]): void {
  if (parcelIds.length === 0) return
  const change = Atomics.add(count, 0, 1n) + 1n
  for (const parcelId of parcelIds) {
    const place = placeOf(parcelId)
    let known = Atomics.load(last, place)
    // Another thread may say something at the same time: the later one stays.
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
