import type { KeptTombstones, MarkedTombstone, StorageState } from '../domain/history/erased.ts'
import type { Params, Statement } from './statement.ts'

export interface Done {
  readonly rows: number
}

/** Runs statements, inside or outside a transaction. */
export interface Session {
  all<P extends Params, R>(statement: Statement<P, R>, params: P): Promise<readonly R[]>
  run<P extends Params>(statement: Statement<P, unknown>, params: P): Promise<Done>
  /**
   * Runs a write after all earlier ones, without a result. If the write fails, either this call throws or the transaction rejects. In both
   * cases nothing is committed.
   */
  enqueueWrite<P extends Params>(statement: Statement<P, unknown>, params: P): void
}

/** Makes functions of the store run on one session. */
export function forSession(session: Session) {
  return <Args extends readonly unknown[], Result>(run: (session: Session, ...args: Args) => Result) =>
    (...args: Args): Result =>
      run(session, ...args)
}

/** The connection that writes to the database. */
export interface WriteEngine {
  readonly session: Session
  /** Resolves when the work is durable; rejects when it was rolled back. Transactions run one at a time. */
  transaction<T>(work: () => Promise<T>): Promise<T>
  /** Whether another connection has written since the last call, so that cached rows may be stale. Call it inside a transaction. */
  changedElsewhere(): boolean
  /** Whether the database failed. False: the request was at fault. */
  isStorageFailure(error: unknown): boolean
  /** Remembers the words that the transaction erases, so that `clean` can search the files for them. Call it inside the transaction. */
  noteErased(words: ErasedWords): void
  /** Overwrites erased data in the files of the database, as far as possible. Returns whether anything is left of the data. */
  clean(): Promise<StorageState>
  readonly tombstones: TombstoneKeeping
  close(): Promise<void>
}

/** Words that were erased. A word has at least four characters: upper-case ASCII letters and digits. */
export interface ErasedWords {
  readonly identifiers: Iterable<string>
  /** The words of texts, which other parcels may use too. */
  readonly texts: Iterable<string>
}

/** Keeps tombstones in a file beside the database, so that they outlive it. When a method returns, its change is on disk. */
export interface TombstoneKeeping {
  append(tombstones: readonly MarkedTombstone[]): void
  /** Removes everything that was appended since the last `settle`. Call it after a rollback. */
  undo(): void
  settle(): void
  /** Replaces the stored sealed key. */
  replaceKey(sealed: string): void
  /** The tombstones that the database lacks, for example after a restore of an older backup, and the sealed key of the tombstones. */
  readonly missed: KeptTombstones
}

/** Copies an open store while the relay continues to write to it. */
export interface StoreCopier {
  /**
   * Copies the store to a file, in steps that are too short to delay other work. The copy shows the store as it is when the copying ends.
   * Replaces an existing file. If the copying fails or is stopped, or if the store is closed, rejects and removes the copy.
   */
  copy(file: string): Promise<void>
  /** Returns how many pages of the store are copied, and how many there are; null: no copy is being made. */
  progress(): { readonly done: number; readonly total: number } | null
  /** Stops the copying, so that `copy` rejects. */
  stop(): void
}
