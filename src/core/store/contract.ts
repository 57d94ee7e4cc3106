import type { StoreCopier } from './engine.ts'
import type { ReadSide } from './read-store.ts'
import type { WriteStore } from './write-store.ts'

/**
 * A storage engine. `write-store.ts` and `read-store.ts` define its methods. This file adds what every engine promises; `test/store/contract/` tests it. Times
 * are epoch milliseconds by the caller's clock, because an engine never reads a clock.
 */
export interface Engine {
  /** `sqlite` or `postgres`, as in the parsed config. */
  readonly name: string
  /**
   * Opens the store for writing. Creates the store if it does not exist, and migrates its schema. `address`: the path of a file, or the URL of a
   * database. If the store is damaged, was written by a newer version or cannot be opened, rejects and changes nothing. The error names the
   * store and the remedy.
   */
  openWriteStore(address: string): Promise<OpenWriteStore>
  /** Opens the store for reading committed data, while others write. The store must have been opened for writing at least once. */
  openReadStore(address: string): ReadSide
}

/**
 * A store that is open for writing.
 *
 * - **Transactions**: parcels, identifiers, settings, due polls and the sequence that a transaction has read stay the same until the transaction
 *   ends. An engine runs transactions one at a time, or a transaction locks what it reads and begins again after a conflict. When a transaction
 *   resolves, its changes are durable and every later read sees them. When a transaction rejects, it has changed nothing.
 * - **Failures**: `isStorageFailure` is true if the store itself failed (disk full, connection lost) and false for any other error.
 * - **Sequences** of all parcels come from one counter. They rise in the order of commits and are never reused. There may be gaps.
 * - **Ids** of parcels and endpoints are never reused, even after deletion.
 * - **Ingest**: a push is stored byte for byte. If a parcel gets the same bytes again, the store counts the duplicate and keeps one copy.
 * - **Polling**: a leased parcel is not due until its lease expires or is released. All leases end when the process ends.
 * - **Delivery**: for each endpoint and parcel, only the first delivery that has not ended can be sent. The transaction that ends or queues a
 *   delivery also decides which delivery is first now. So no delivery ever waits behind one that has ended.
 * - **Feed**: after a reader has seen sequence N, no event with a sequence of N or less appears any more.
 * - **Versions** (PostgreSQL): every commit that changes an answer about a parcel also changes the parcel's version. A parcel that was joined to
 *   another has no version.
 * - **Listings**: each page continues where the previous one ended. A row whose sort key does not change is listed exactly once.
 */
export interface OpenWriteStore extends WriteStore {
  /** Absent on PostgreSQL, which has its own tools for backups. */
  readonly copier?: StoreCopier
  close(): Promise<void>
}
