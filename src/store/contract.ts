import type { ReadSide } from '../flow/read-side.ts'
import type { WriteStore } from '../flow/write-store.ts'

/**
 * What keeps the data. The verbs and their shapes are those of the ports in `flow/`; what every engine promises besides is said here, and
 * `test/store/contract/` holds each engine to it. Times are epoch milliseconds of the caller's clock: an engine reads no clock of its own.
 */
export interface Engine {
  /** As the setting `store.engine` has it. */
  readonly name: string
  /**
   * Makes the store if there is none, brings its schema up to date, and opens it for writing. Rejects, with the place and what to do, when it is
   * damaged, was made by a newer version, or cannot be had; then nothing has been changed.
   */
  openWriteStore(place: string): Promise<OpenWriteStore>
  /** Reads what has been committed, beside the writer. The store must have been opened for writing once. */
  openReadStore(place: string): ReadSide
}

/**
 * A store that is open for writing.
 *
 * - **Transactions**: one at a time. When one resolves, all it did is durable and every read that begins later sees it; when it rejects,
 *   nothing of it has happened. A savepoint that rejects undoes only its own part.
 * - **Failures**: `isStorageFailure` tells a store that failed from a request that could not be kept. It is false for any other error.
 * - **Sequences**: one counter for all parcels. Within committed work numbers rise in the order of commits, and none is given twice;
 *   there may be gaps.
 * - **Ids**: an id of a parcel or an endpoint is never given again, even after what had it is gone.
 * - **Ingest**: a push is kept byte for byte. The same bytes of one parcel are kept once, and counted.
 * - **Polling**: a leased parcel is due for nobody else until the lease lapses or is released. A lease ends with the run that took it.
 * - **Delivery**: of a parcel at most one delivery per endpoint may go, and it is the first that has not ended; so settling, replaying
 *   and enqueuing leave nothing waiting behind what has ended.
 * - **Feed**: a reader who has seen sequence N never finds an event with a sequence of N or less later.
 * - **Listings**: a page goes on where the one before it ended; what has not moved meanwhile is listed exactly once.
 */
export interface OpenWriteStore extends WriteStore {
  close(): Promise<void>
}
