import type { StorageState } from '../domain/admin/erasure.ts'
import type { KeptTombstones } from '../domain/history/erased.ts'
import type { AdminTx } from './admin/admin-store.ts'
import type { ErasureTx } from './admin/erasure/erasure-store.ts'
import type { DeliveryTx } from './delivery/delivery-store.ts'
import type { Session } from './engine.ts'
import type { HistoryTx } from './history/history-store.ts'
import type { PollingTx } from './polling/polling-store.ts'

/**
 * The store inside one transaction: the session, with which the functions of the store run their statements, and the verbs that differ by
 * engine. Each verb sees the effects of the verbs before it. A verb that returns nothing need not be awaited. If it fails, it throws at once,
 * or makes the transaction fail later.
 */
export interface WriteTx extends Session, HistoryTx, PollingTx, DeliveryTx, AdminTx, ErasureTx {}

/** Options of a transaction in a store that replicas share. A store that is not shared ignores them. */
export interface TransactionKind<T = unknown> {
  /**
   * The role for which the transaction acts. The transaction fails if this replica does not hold the role, or was declared dead after the
   * transaction was requested. `any`: the transaction fails only if this replica was declared dead; the caller has checked the role before.
   */
  readonly ofRole?: 'poller' | 'janitor' | 'any'
  /**
   * Whether to announce to other replicas that the deliveries of endpoints have changed. A function decides this by the transaction's result.
   * Do not announce work that has changed nothing, because replicas do some work after each announcement and would never come to rest.
   */
  readonly announced?: boolean | ((result: T) => boolean)
}

/** Runs transactions. */
export interface Transactions {
  /** Commits durably when `work` resolves, and rolls back when it rejects. Transactions run one at a time. */
  transaction<T>(work: (tx: WriteTx) => Promise<T>, kind?: TransactionKind<T>): Promise<T>
}

/** The store, for writing. */
export interface WriteStore extends Transactions {
  /** Whether an error is a failure of the store (full, unreadable, locked), rather than one that the data has caused. */
  isStorageFailure(error: unknown): boolean
  /** Removes erased data from the files of the store, as far as the engine can. Returns whether the files are clean. */
  cleanStorage(): Promise<StorageState>
  /** Returns the tombstones of erasures that were made after the backup from which the store was restored. */
  missedTombstones(): Promise<KeptTombstones>
}
