import type { StorageState } from '../domain/admin/erasure.ts'
import type { KeptTombstones, MarkedTombstone } from '../domain/history/erased.ts'
import type { Params, Statement } from './statement.ts'

export interface Done {
  /** Number of rows inserted, updated or deleted. */
  readonly rows: number
}

/** Runs statements, inside or outside a transaction. */
export interface Session {
  all<P extends Params, R>(statement: Statement<P, R>, params: P): Promise<readonly R[]>
  run<P extends Params>(statement: Statement<P, unknown>, params: P): Promise<Done>
  /**
   * Runs a write in order, without a result. If it fails, the failure is thrown here or rejects the transaction, so the transaction cannot
   * commit.
   */
  enqueueWrite<P extends Params>(statement: Statement<P, unknown>, params: P): void
}

/** The writing connection. It hides the differences between databases from the code that they share. */
export interface WriteEngine {
  readonly session: Session
  /**
   * Resolves when the work is durable; rejects when it was rolled back. Transactions run one at a time, and callers wait for their turn.
   */
  transaction<T>(work: () => Promise<T>): Promise<T>
  /** Whether another connection has written since the last call, so that cached rows may be stale. Call it inside a transaction. */
  changedElsewhere(): boolean
  /** Whether the database itself failed. False: the request was at fault. */
  isStorageFailure(error: unknown): boolean
  /** Remembers what the transaction erases, for `clean` to search for. Call it inside the transaction. */
  noteErased(words: ErasedWords): void
  /** Removes erased data from the files, as far as possible, and says whether it has. */
  clean(): Promise<StorageState>
  /** The tombstones beside the database. */
  readonly tombstones: TombstoneKeeping
  close(): Promise<void>
}

/** Words that were erased: ASCII letters in upper case, and digits, at least four. */
export interface ErasedWords {
  /** The identifiers of parcels. */
  readonly identifiers: Iterable<string>
  /** The words of texts, which other parcels may use too. */
  readonly texts: Iterable<string>
}

/** Keeps tombstones outside of the database, so that they outlive it. When a method returns, its change is on disk. */
export interface TombstoneKeeping {
  append(tombstones: readonly MarkedTombstone[]): void
  /** Takes back everything that was appended since `settle`, because the transaction was rolled back. */
  undo(): void
  settle(): void
  /** Replaces the stored sealed key. */
  replaceKey(sealed: string): void
  /** The tombstones that the database does not have, because it is older, as after a restore. Their sealed key is with them. */
  readonly missed: KeptTombstones
}
