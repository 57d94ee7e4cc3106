/** The parcels being polled, each with the time when its lease expires (epoch milliseconds). */
export interface Leases {
  take(parcelIds: readonly number[], untilMs: number): void
  release(parcelId: number): void
  /** Shortens all leases after the clock was set back. */
  putBack(byMs: number): void
  /** Drops expired leases; returns the rest. */
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
 * Keeps leases in memory, because one process writes the store. Stored leases would rewrite a row and its index entry twice per poll, and
 * would delay polls after a crash although none is in flight.
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
