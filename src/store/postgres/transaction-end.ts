import type { Session } from '../engine.ts'
import { advanceAtEnd } from './counter.ts'
import { PROVISIONAL } from './history/provisional.ts'

/**
 * The last part of a transaction. A transaction that locks the counter keeps all others from committing, so it must not hold the lock over
 * a round trip. Everything that needs the counter is collected here, and sent together with the commit. Until then numbers are provisional.
 */
export interface TransactionEnd {
  /** Gives the next number. It is provisional, so write rows with it in `whenNumbered`. */
  give(): number
  /** A provisional number for the first sequence after this transaction. */
  toCome(): number
  /**
   * Notes that endpoints have changed. `known`: their version when they were read; if others have changed them since, the transaction
   * begins again. Null: they were not read.
   */
  changeEndpoints(known: number | null): void
  /** Begins the transaction again if a number above `sequence` was given. */
  nothingSince(sequence: number): void
  /** Adds a write that is sent when the counter is locked and real numbers are known. */
  whenNumbered(write: () => void): void
  /** Sends everything. The commit must follow at once. */
  send(): void
}

export function createTransactionEnd(session: Session): TransactionEnd {
  const writes: (() => void)[] = []
  let given = 0
  let change: { readonly known: number | null } | null = null
  let last: number | null = null
  return {
    give() {
      given += 1
      return PROVISIONAL + given
    },
    toCome: () => PROVISIONAL + given + 1,
    changeEndpoints(known) {
      change ??= { known }
    },
    nothingSince(sequence) {
      last = sequence
    },
    whenNumbered: (write) => void writes.push(write),
    send() {
      if (given === 0 && change === null && last === null && writes.length === 0) return
      advanceAtEnd(session, { count: given, changes: change === null ? 0 : 1, version: change?.known ?? null, last })
      for (const write of writes) write()
    },
  }
}
