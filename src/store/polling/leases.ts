/** Which parcels are being asked about, and until when that is believed (epoch milliseconds). */
export interface Leases {
  take(parcelIds: readonly number[], untilMs: number): void
  release(parcelId: number): void
  /** The clock was put back: leases end that much sooner by it. */
  putBack(byMs: number): void
  /** Forgets those that lapsed; returns the rest. */
  held(nowMs: number): ReadonlyMap<number, number>
}

/** Leases within a transaction that may meet others. */
export interface TransactionLeases extends Leases {
  /** The transaction is durable: what it released may be claimed. */
  committed(): void
  /** Nothing of the transaction has happened: what it claimed is free again. */
  rolledBack(): void
}

/**
 * What is claimed is nobody else's at once. What is released may be claimed only when everybody sees the time that it is due at next: before that it is still
 * due for those who look.
 */
export function createTransactionLeases(leases: Leases): TransactionLeases {
  const taken: number[] = []
  const atCommit: (() => void)[] = []
  return {
    take(parcelIds, untilMs) {
      taken.push(...parcelIds)
      leases.take(parcelIds, untilMs)
    },
    release: (parcelId) => void atCommit.push(() => leases.release(parcelId)),
    putBack: (byMs) => void atCommit.push(() => leases.putBack(byMs)),
    held: leases.held,
    committed() {
      for (const work of atCommit) work()
    },
    rolledBack() {
      for (const parcelId of taken) leases.release(parcelId)
    },
  }
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
