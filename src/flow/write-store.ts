import type { StorageState } from '../domain/admin/erasure.ts'
import type { KeptTombstones } from '../domain/history/erased.ts'
import type { ErasureTx } from './admin/erasure/erasure-ports.ts'
import type { AdminTx } from './admin/ports.ts'
import type { DeliveryTx } from './delivery/delivery-tx.ts'
import type { HistoryTx } from './history/ports.ts'
import type { IngestTx } from './ingest/ports.ts'
import type { PollingTx } from './polling/ports.ts'

/**
 * The store inside one transaction. Each verb sees the effects of the ones before. A verb that returns nothing need not be awaited: a
 * failure throws at once, or fails the transaction later.
 */
export interface WriteTx extends HistoryTx, IngestTx, PollingTx, DeliveryTx, AdminTx, ErasureTx {}

/** Options of a transaction in a store that replicas share. A store that is not shared ignores them. */
export interface TransactionKind<T = unknown> {
  /**
   * The role for which the transaction acts. It fails if this replica does not hold the role, or was declared dead after the transaction
   * was requested. `any`: it fails only if this replica was declared dead, because the caller knows that the role was held before.
   */
  readonly ofRole?: 'poller' | 'janitor' | 'any'
  /**
   * Whether to announce to other replicas that the deliveries of endpoints have changed. A function decides by the result. Work that has
   * changed nothing must not be announced: replicas do some work after each announcement, so they would never come to rest.
   */
  readonly announced?: boolean | ((result: T) => boolean)
}

/** Transactions with only the verbs that some work needs, so that the type of a function shows what it touches. */
export interface Transactions<Tx> {
  /** Commits durably when `work` resolves, and rolls back when it rejects. One transaction at a time. */
  transaction<T>(work: (tx: Tx) => Promise<T>, kind?: TransactionKind<T>): Promise<T>
}

/** The store, for writing. */
export interface WriteStore extends Transactions<WriteTx> {
  /** Whether the store has failed (full, unreadable, locked), and not the data to be recorded. */
  isStorageFailure(error: unknown): boolean
  /** Removes erased data from the files of the store, as far as the engine can, and says whether it has. */
  cleanStorage(): Promise<StorageState>
  /** The tombstones of erasures of which the store does not know, because it was restored from an older backup. */
  missedTombstones(): Promise<KeptTombstones>
}
