import type { StoreCopier } from '../flow/admin/backups/backup-ports.ts'
import type { ReadSide } from '../flow/read-side.ts'
import type { WriteStore } from '../flow/write-store.ts'

/**
 * A storage engine. The ports in `flow/` define its methods. This file adds what every engine promises, and `test/store/contract/` tests each
 * engine for these promises. Times are epoch milliseconds by the caller's clock, because an engine never reads a clock.
 */
export interface Engine {
  /** `sqlite` or `postgres`, as in the parsed config. */
  readonly name: string
  /**
   * Opens the store for writing. `address`: the path of a file, or the URL of a database. Creates the store if it does not exist, and migrates
   * its schema. Rejects if the store is damaged, was written by a newer version or cannot be opened. In that case it has changed nothing, and
   * the error names the store and the remedy.
   */
  openWriteStore(address: string): Promise<OpenWriteStore>
  /** Opens the store for reading committed data, while others write. The store must have been opened for writing at least once. */
  openReadStore(address: string): ReadSide
}

/**
 * A store that is open for writing.
 *
 * - **Transactions** do not disturb each other: the parcels, identifiers, settings, due polls and sequence that a transaction has read stay
 *   the same until it ends. They run one at a time, or lock what they read and begin again after a conflict. When a transaction resolves, its
 *   changes are durable and every later read sees them. When a transaction rejects, it has changed nothing.
 * - **Failures**: `isStorageFailure` is true if the store itself failed (disk full, connection lost) and false for any other error.
 * - **Sequences**: all parcels share one counter. Numbers rise in the order of commits and are never reused. There may be gaps.
 * - **Ids** of parcels and endpoints are never reused, even after deletion.
 * - **Ingest**: a push is stored byte for byte. If a parcel gets the same bytes again, the store counts the duplicate and keeps one copy.
 * - **Polling**: a leased parcel is not due until its lease expires or is released. All leases end when the process ends.
 * - **Delivery**: for each endpoint and parcel, only the first delivery that has not ended can be sent. When a delivery ends or is queued, the
 *   same transaction decides which delivery is first now, so no delivery ever waits behind a delivery that has ended.
 * - **Feed**: after a reader has seen sequence N, no event with a sequence of N or less appears any more.
 * - **Versions**: if a store has versions of parcels, every commit that changes an answer about a parcel also changes the parcel's version. A
 *   parcel that was joined to another has no version.
 * - **Listings**: each page continues where the previous one ended. A row whose sort key does not change is listed exactly once.
 */
export interface OpenWriteStore extends WriteStore {
  /** Absent on PostgreSQL, which has its own tools for backups. */
  readonly copier?: StoreCopier
  close(): Promise<void>
}
