/** The parcels being polled, each with the time when its lease expires (epoch milliseconds). */
export interface Leases {
  take(parcelIds: readonly number[], untilMs: number): void
  release(parcelId: number): void
  /** Must be called when the clock was set back by `byMs`. Shortens all leases. */
  putBack(byMs: number): void
  /** Drops expired leases; returns the rest. */
  held(nowMs: number): ReadonlyMap<number, number>
}

/** Leases of one transaction, for engines that run several transactions at once. */
export interface TransactionLeases extends Leases {
  /** Applies the releases. Call it once the transaction is durable. */
  committed(): void
  /** Releases what the transaction took. Call it after a rollback. */
  rolledBack(): void
}

/**
 * A lease takes effect at once, but a release takes effect only after the commit. Until the commit, other transactions read the old due time,
 * and would poll the parcel again if it had no lease.
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
 * Keeps leases in memory, because only one process polls. With leases in the database, each poll would rewrite a row and its index entry
 * twice, and the leases of a crashed process would delay polls.
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
