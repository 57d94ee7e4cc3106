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
  /** Runs a write in order without reporting a result. A failure throws here or rejects the transaction, so nothing commits without it. */
  enqueueWrite<P extends Params>(statement: Statement<P, unknown>, params: P): void
}

/** The writing connection. It hides all that differs between databases from the shared store code. */
export interface WriteEngine {
  readonly session: Session
  /** Durable when it resolves; rolled back when it rejects. Transactions run one at a time: callers queue. */
  transaction<T>(work: () => Promise<T>): Promise<T>
  /** Whether another connection has written since the last call, so that cached rows may be stale. Call it inside a transaction. */
  changedElsewhere(): boolean
  /** Whether the database itself failed; false if the request was at fault. */
  isStorageFailure(error: unknown): boolean
  /** Removes what was erased from the files, as far as possible, and says whether it has. */
  clean(): Promise<StorageState>
  /** The tombstones beside the database. */
  readonly tombstones: TombstoneKeeping
  close(): Promise<void>
}

/** Keeps tombstones outside the database, so that they outlive it. What was kept is on disk when a method returns. */
export interface TombstoneKeeping {
  append(tombstones: readonly MarkedTombstone[]): void
  /** Takes back what was appended since `settle`, because its transaction was rolled back. */
  undo(): void
  settle(): void
  /** Keeps the sealed key in place of the one that is kept. */
  replaceKey(sealed: string): void
  /** What was kept and the database lacks, because it is older, as after a restore; with the sealed key that is kept. */
  readonly missed: KeptTombstones
}
