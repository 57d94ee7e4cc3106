import type { Session } from '../engine.ts'
import { advanceAtEnd } from './counter.ts'
import { PROVISIONAL } from './history/provisional.ts'

/**
 * What a transaction does last. Everything that needs the counter is kept until nothing more is waited for, and is sent together with the commit: whoever
 * holds the counter keeps all others from committing, so nobody may hold it across a round trip. Until then numbers are provisional.
 */
export interface TransactionEnd {
  /** Gives the next number: a provisional one, so what holds it is written by `whenNumbered`. */
  give(): number
  /** Stands for the first number of what is recorded after this transaction. */
  toCome(): number
  /** Endpoints have changed. `known`: their version when they were read; if others have changed them since, the transaction is begun again; null: they were not read. */
  changeEndpoints(known: number | null): void
  /** If anything was given a number above `sequence`, the transaction is begun again. */
  nothingSince(sequence: number): void
  /** Does something when the counter is locked and numbers are known. */
  whenNumbered(write: () => void): void
  /** Sends all that. The commit must follow at once. */
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
