import type { StoredRow, StoreNumbers } from './store-move.rules.ts'

/** A table that a move copies. */
export interface CopiedTable {
  readonly name: string
  /** The first `keyLength` values of a row are its primary key. */
  readonly keyLength: number
}

/** Reads the rows of a store as they are stored. */
export interface StoredTables {
  /** Reads rows in the order of their keys, from the first key above `after` (null: any) up to and including `upTo` (null: no limit). */
  page(
    table: CopiedTable,
    range: { readonly after: StoredRow | null; readonly upTo: StoredRow | null; readonly limit: number },
  ): Promise<readonly StoredRow[]>
  /** Reads the rows with these keys, in any order. */
  find(table: CopiedTable, keys: readonly StoredRow[]): Promise<readonly StoredRow[]>
}

/** The old store. A move copies from it while the relay goes on using it. */
export interface MoveSource extends StoredTables {
  readonly tables: readonly CopiedTable[]
  /**
   * Records in the store that a move copies it, so that the next start of a killed relay knows that it must clean up after the move. Rejects
   * if another replica is copying the store.
   */
  announce(): Promise<void>
  /** From now until the move ends, records the key of every row that changes. */
  begin(): Promise<void>
  count(table: CopiedTable): Promise<number>
  /** Returns the next recorded keys, roughly the oldest first. Read their rows only after this call, so that they include the changes. */
  changes(table: CopiedTable, limit: number): Promise<{ readonly marks: readonly number[]; readonly keys: readonly StoredRow[] }>
  /** Deletes recorded keys by the `marks` that `changes` returned. */
  forget(table: CopiedTable, marks: readonly number[]): Promise<void>
  /** Counts the recorded keys, but only up to a limit for each table, because counting millions of keys would take too long. */
  countChanges(): Promise<number>
  /** Runs `work` for at most a quarter of a second, while no other connection can change rows. Then lets them write for at least 0.1 seconds. */
  alone<T>(work: () => Promise<T>): Promise<T>
  /** Does in advance what would make the switch take longer. */
  prepareSwitch(): Promise<void>
  /** Asks all replicas that use the store to stop writing. */
  pause(): Promise<void>
  /** Returns the last ids and sequences that the store has used. */
  numbers(): Promise<StoreNumbers>
  /**
   * Runs `work` while nobody else can write. If `work` resolves, the store is marked as moved at `nowMs` and accepts no more writes. If `work`
   * rejects, nothing has changed. Rejects if others do not stop writing.
   */
  seal(work: () => Promise<void>, nowMs: number): Promise<void>
  /** Removes all that the move has added to the store, and marks the job as failed. The store stays in use. */
  abandon(failure: string, nowMs: number): Promise<void>
  close(): Promise<void>
}

/** The store to which a move copies. */
export interface MoveTarget extends StoredTables {
  /** Prepares the store: it must be empty, or contain only the copy of an unfinished move, which is deleted. Otherwise rejects. */
  claim(): Promise<void>
  /** Stores `rows` in place of the rows with these keys. If `rows` has none for a key, the old store has deleted it, so deletes it here too. */
  replace(table: CopiedTable, keys: readonly StoredRow[], rows: readonly StoredRow[]): Promise<void>
  /** Marks the copy as complete and its job as done. */
  complete(numbers: StoreNumbers, job: { readonly jobId: number; readonly done: number; readonly nowMs: number }): Promise<void>
  /** Allows a relay to open the copy. Must be called after the old store was marked as moved. */
  release(): Promise<void>
  close(): Promise<void>
}
