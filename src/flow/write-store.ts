import type { AdminTx } from './admin/ports.ts'
import type { DeliveryTx } from './delivery/delivery-tx.ts'
import type { HistoryTx } from './history/ports.ts'
import type { IngestTx } from './ingest/ports.ts'
import type { PollingTx } from './polling/ports.ts'

/**
 * The store inside one transaction. Each verb sees the effects of the ones before. Verbs that return nothing are not awaited: a failure
 * throws at once or fails the transaction later.
 */
export interface WriteTx extends HistoryTx, IngestTx, PollingTx, DeliveryTx, AdminTx {}

/** How a transaction concerns the replicas that share a store. Where one process has the store for itself, it means nothing. */
export interface TransactionKind<T = unknown> {
  /**
   * It is for a role: it fails if this replica, as it was when the transaction was asked for, has been declared dead or does not hold that
   * role. `any`: whichever it is for, the caller knows that it was held under the same number.
   */
  readonly ofRole?: 'poller' | 'janitor' | 'any'
  /**
   * Tells other replicas that it changed what waits for endpoints; a function decides by the result. Replicas answer an announcement with work of their own. If
   * work that changed nothing were announced, they would never come to rest.
   */
  readonly announced?: boolean | ((result: T) => boolean)
}

/** The store, for writing. */
export interface WriteStore {
  /** Commits durably when `work` resolves, and rolls back when it rejects. One transaction at a time. */
  transaction<T>(work: (tx: WriteTx) => Promise<T>, kind?: TransactionKind<T>): Promise<T>
  /** Whether an error is a failure of the store (full, unreadable, locked) rather than of what was recorded. */
  isStorageFailure(error: unknown): boolean
}
