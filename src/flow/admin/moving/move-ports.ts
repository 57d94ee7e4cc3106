import type { StoredRow, StoreNumbers } from '../../../domain/admin/store-move.ts'

/** A table that a move copies. */
export interface CopiedTable {
  readonly name: string
  /** How many values of a row are its primary key. */
  readonly keyLength: number
}

/** Reads the rows of a store as they are, for a move. */
export interface StoredTables {
  /** Rows in the order of their keys, after one key, up to and including another. Null: from the first, or to the last. */
  page(
    table: CopiedTable,
    range: { readonly after: StoredRow | null; readonly upTo: StoredRow | null; readonly limit: number },
  ): Promise<readonly StoredRow[]>
  /** The rows with these keys, in any order. */
  find(table: CopiedTable, keys: readonly StoredRow[]): Promise<readonly StoredRow[]>
}

/** The store in use, from which a move copies while others write to it. */
export interface MoveSource extends StoredTables {
  readonly tables: readonly CopiedTable[]
  /**
   * Notes in the store that it is being copied, so that a move that is killed can be cleared later. Rejects if another replica copies it.
   */
  announce(): Promise<void>
  /** Begins to keep the key of every row that changes, until the move ends. */
  begin(): Promise<void>
  count(table: CopiedTable): Promise<number>
  /** The next kept keys, roughly oldest first. A row that is read after its key is at least as new as the change. */
  changes(table: CopiedTable, limit: number): Promise<{ readonly marks: readonly number[]; readonly keys: readonly StoredRow[] }>
  /** Drops kept keys by their marks, which `changes` returned. */
  forget(table: CopiedTable, marks: readonly number[]): Promise<void>
  /** How many keys are kept. Each table is counted up to a limit only, so that millions of them do not take long. */
  countChanges(): Promise<number>
  /**
   * Keeps others from recording while `work` runs, for at most a quarter of a second. After that, others have at least a tenth of a second.
   */
  alone<T>(work: () => Promise<T>): Promise<T>
  /** Does work beforehand that would make the switch longer. */
  prepareSwitch(): Promise<void>
  /** Asks all others that use the store to stop writing. */
  pause(): Promise<void>
  /** The last numbers given. */
  numbers(): Promise<StoreNumbers>
  /**
   * Lets nobody else write while `work` runs. If `work` resolves, the store is marked as moved at `nowMs` and takes no more writes; if it
   * rejects, nothing has changed. Rejects if others keep writing.
   */
  seal(work: () => Promise<void>, nowMs: number): Promise<void>
  /** Removes everything that the move has added to the store, which stays in use, and marks the job as failed. */
  abandon(failure: string, nowMs: number): Promise<void>
  close(): Promise<void>
}

/** The store to which a move copies. */
export interface MoveTarget extends StoredTables {
  /** Takes an empty store, or empties one that an earlier move has left unfinished. Rejects if the store holds anything else. */
  claim(): Promise<void>
  /** Replaces the rows with these keys by `rows`. A key without a row means that its row was deleted. */
  replace(table: CopiedTable, keys: readonly StoredRow[], rows: readonly StoredRow[]): Promise<void>
  /** Marks the copy as complete and its job as done. */
  complete(numbers: StoreNumbers, job: { readonly jobId: number; readonly done: number; readonly nowMs: number }): Promise<void>
  /** Lets the copy open as any store does. To be called when the source is marked as moved. */
  release(): Promise<void>
  close(): Promise<void>
}
