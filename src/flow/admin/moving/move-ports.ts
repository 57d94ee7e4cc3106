import type { StoredRow, StoreNumbers } from '../../../domain/admin/store-move.ts'

/** A table that a move copies. */
export interface CopiedTable {
  readonly name: string
  /** How many values of a row make up its primary key. */
  readonly keyLength: number
}

/** Reads the rows of a store unchanged, for a move. */
export interface StoredTables {
  /** Rows in the order of their keys, after one key, up to and including another. Null: from the first row, or to the last. */
  page(
    table: CopiedTable,
    range: { readonly after: StoredRow | null; readonly upTo: StoredRow | null; readonly limit: number },
  ): Promise<readonly StoredRow[]>
  /** The rows with these keys, in any order. */
  find(table: CopiedTable, keys: readonly StoredRow[]): Promise<readonly StoredRow[]>
}

/** The store in use. A move copies from it while others write to it. */
export interface MoveSource extends StoredTables {
  readonly tables: readonly CopiedTable[]
  /**
   * Notes in the store that it is being copied, so that a move that was killed can be cleared away later. Rejects if another replica is
   * copying it.
   */
  announce(): Promise<void>
  /** Begins to record the key of every row that changes, until the move ends. */
  begin(): Promise<void>
  count(table: CopiedTable): Promise<number>
  /** The next recorded keys, roughly the oldest first. A row that is read after its key is at least as new as the change. */
  changes(table: CopiedTable, limit: number): Promise<{ readonly marks: readonly number[]; readonly keys: readonly StoredRow[] }>
  /** Drops recorded keys by their marks, which `changes` returned. */
  forget(table: CopiedTable, marks: readonly number[]): Promise<void>
  /** How many keys are recorded. Each table is counted only up to a limit, so that millions of keys do not take long. */
  countChanges(): Promise<number>
  /**
   * Keeps others from recording while `work` runs, for at most a quarter of a second. Afterwards others have at least a tenth of a second.
   */
  alone<T>(work: () => Promise<T>): Promise<T>
  /** Does work in advance that would make the switch longer. */
  prepareSwitch(): Promise<void>
  /** Asks all others that use the store to stop writing. */
  pause(): Promise<void>
  /** The last numbers given. */
  numbers(): Promise<StoreNumbers>
  /**
   * Runs `work` while nobody else can write. If `work` resolves, the store is marked as moved at `nowMs` and takes no more writes. If it
   * rejects, nothing has changed. Rejects if others keep writing.
   */
  seal(work: () => Promise<void>, nowMs: number): Promise<void>
  /** Removes everything that the move has added to the store, which stays in use. Marks the job as failed. */
  abandon(failure: string, nowMs: number): Promise<void>
  close(): Promise<void>
}

/** The store to which a move copies. */
export interface MoveTarget extends StoredTables {
  /** Takes an empty store, or empties one that an earlier move has not finished. Rejects if the store holds anything else. */
  claim(): Promise<void>
  /** Replaces the rows with these keys by `rows`. A key without a row means that the row was deleted. */
  replace(table: CopiedTable, keys: readonly StoredRow[], rows: readonly StoredRow[]): Promise<void>
  /** Marks the copy as complete and its job as done. */
  complete(numbers: StoreNumbers, job: { readonly jobId: number; readonly done: number; readonly nowMs: number }): Promise<void>
  /** Lets the copy open like any other store. Call it when the source is marked as moved. */
  release(): Promise<void>
  close(): Promise<void>
}
