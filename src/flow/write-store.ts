import type { AdminTx } from './admin/ports.ts'
import type { DeliveryTx } from './delivery/ports.ts'
import type { HistoryTx } from './history/ports.ts'
import type { IngestTx } from './ingest/ports.ts'
import type { PollingTx } from './polling/ports.ts'

/**
 * The store inside one transaction. Every verb sees what the ones before it did. Of those that give nothing nobody waits: what goes wrong
 * with one throws at once, or fails the transaction later.
 */
export interface WriteTx extends HistoryTx, IngestTx, PollingTx, DeliveryTx, AdminTx {}

export interface WriteStore {
  /** Commits, durably, when `work` resolves; undoes everything when it rejects. One at a time. */
  transaction<T>(work: (tx: WriteTx) => Promise<T>): Promise<T>
  /** Within `transaction`: undoes only `work` when that rejects. */
  savepoint<T>(tx: WriteTx, work: () => Promise<T>): Promise<T>
  /** Whether an error came from the store (full, unreadable, locked) rather than from what was being recorded. */
  isStorageFailure(error: unknown): boolean
}
