import type { StoredRow, StoreNumbers } from '../../../domain/admin/store-move.ts'

/** A table that a move copies. */
export interface CopiedTable {
  readonly name: string
  /** How many values of a row are its primary key. */
  readonly keyLength: number
}

/** Reads the rows of a store as they are, for a move. */
export interface StoredTables {
  /** Rows in the order of their keys: after one key, up to and with another. Null: from the first, or to the last. */
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
  /** Writes into the store that it is being copied, so that a kill leaves a trace. Rejects if another replica is copying it. */
  announce(): Promise<void>
  /** From now on the key of every row that changes is kept, until the move ends. */
  begin(): Promise<void>
  count(table: CopiedTable): Promise<number>
  /** The next kept keys, roughly oldest first. A row that is read after its key is at least as new as the change. */
  changes(table: CopiedTable, limit: number): Promise<{ readonly marks: readonly number[]; readonly keys: readonly StoredRow[] }>
  /** Drops kept keys by their marks. */
  forget(table: CopiedTable, marks: readonly number[]): Promise<void>
  /** How many keys are kept. It stops counting at some number for each table, so that millions of them do not take long. */
  countChanges(): Promise<number>
  /** Keeps others from recording while `work` runs, for at most a quarter of a second. Before the next time they have a tenth of a second to themselves. */
  alone<T>(work: () => Promise<T>): Promise<T>
  /** Does beforehand what would make the switch longer. */
  prepareSwitch(): Promise<void>
  /** Asks all others who use the store to write no more. */
  pause(): Promise<void>
  /** The last numbers given. */
  numbers(): Promise<StoreNumbers>
  /**
   * Lets nobody else write while `work` runs. When that resolves, the store is marked as moved at `nowMs` and takes no writes any more; when it rejects,
   * nothing has changed. Rejects if others keep writing.
   */
  seal(work: () => Promise<void>, nowMs: number): Promise<void>
  /** Stays in use: everything that the move has added to it is gone, and its job has failed. */
  abandon(failure: string, nowMs: number): Promise<void>
  close(): Promise<void>
}

/** The store to which a move copies. */
export interface MoveTarget extends StoredTables {
  /** Takes a store that is empty, or empties what an earlier move has left unfinished. Rejects if it holds anything else. */
  claim(): Promise<void>
  /** Replaces the rows with these keys by these. A key without a row is one whose row is gone. */
  replace(table: CopiedTable, keys: readonly StoredRow[], rows: readonly StoredRow[]): Promise<void>
  /** Everything is there. The job that moved it is done. */
  complete(numbers: StoreNumbers, job: { readonly jobId: number; readonly done: number; readonly nowMs: number }): Promise<void>
  /** The source is marked as moved: from now on it opens as any store does. */
  release(): Promise<void>
  close(): Promise<void>
}
