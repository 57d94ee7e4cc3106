/** Which parcels are being asked about, and until when that is believed (epoch milliseconds). */
export interface Leases {
  take(parcelIds: readonly number[], untilMs: number): void
  release(parcelId: number): void
  /** The clock was put back: leases end that much sooner by it. */
  putBack(byMs: number): void
  /** Forgets those that lapsed; returns the rest. */
  held(nowMs: number): ReadonlyMap<number, number>
}

/**
 * Leases of a store that one process writes: they are held where that process can lose them. Written down, each would rewrite a row and its
 * place in the order of falling due twice a poll; and after a kill nothing is being asked about any more, so that nothing should wait.
 */
export function createLeases(): Leases {
  const leases = new Map<number, number>()
  return {
    take(parcelIds, untilMs) {
      for (const parcelId of parcelIds) leases.set(parcelId, untilMs)
    },
    release: (parcelId) => void leases.delete(parcelId),
    putBack(byMs) {
      for (const [parcelId, untilMs] of leases) leases.set(parcelId, untilMs - byMs)
    },
    held(nowMs) {
      for (const [parcelId, untilMs] of leases) if (untilMs <= nowMs) leases.delete(parcelId)
      return leases
    },
  }
}
