import type { Session } from '../../core/store/engine.ts'
import { advanceAtEnd } from './counter.ts'
import { PROVISIONAL } from './history/provisional.ts'

/**
 * The last part of a transaction. A transaction that locks the counter keeps all others from committing, so it must not wait for an answer
 * while it has the lock. Everything that needs the counter is collected here, and sent together with the commit. Until the commit, sequences
 * are provisional.
 */
export interface TransactionEnd {
  /** Returns the next sequence. It is provisional, so write rows with it in `whenNumbered`. */
  give(): number
  /** Returns a provisional number for the first sequence after this transaction. */
  toCome(): number
  /**
   * Notes that this transaction changes endpoints. `known`: the version of the endpoints when it read them; null: it has not read them. If
   * another transaction has changed endpoints since, this one begins again.
   */
  changeEndpoints(known: number | null): void
  /** Makes the transaction begin again if another one has taken a number above `sequence`. */
  nothingSince(sequence: number): void
  /** Adds a write that is sent after the counter is locked, so that the server can replace provisional numbers. */
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
