import type { Job, JobTask, UnendedJob } from '../../domain/admin/job.ts'
import type { InspectedParcel, ParcelPage, ParcelQuery, StoreCounts } from '../../domain/admin/parcel-list.ts'
import type { StoredRow, StoreNumbers } from '../../domain/admin/store-move.ts'

/** The verbs of admin that write; see `WriteSide`. Times are epoch milliseconds. */
export interface AdminWrites {
  /** The secret that signs the relay's tokens, created on first use and then kept. */
  tokenKey(): Promise<Uint8Array>
  /** Queues a job; null: too many have not ended. */
  startJob(request: { readonly task: JobTask; readonly by: string; readonly nowMs: number }): Promise<Job | null>
  /** Does a batch of the oldest unended job; `isDone`: there is none. Progress is in the store, so a restart continues there. */
  workOnJobs(request: { readonly limit: number; readonly nowMs: number }): Promise<{ readonly isDone: boolean }>
  /** Saves how many rows a move has copied. `isWanted` is false when its job was cancelled. */
  noteMove(request: { readonly jobId: number; readonly done: number; readonly nowMs: number }): Promise<{ readonly isWanted: boolean }>
  /** Cancels a job where it is; one that has ended stays as it is. Null: there is no such job. */
  cancelJob(request: { readonly jobId: number; readonly nowMs: number }): Promise<Job | null>
}

/** What admin needs of the store inside one transaction; see `WriteTx`. */
export interface AdminTx {
  /** Adds a waiting job. */
  insertJob(task: JobTask, by: string, nowMs: number): Promise<Job>
  /** The jobs that have not ended, the oldest first. */
  listUnendedJobs(limit: number): Promise<readonly UnendedJob[]>
  /** Saves the state and the progress of a job. */
  saveJob(job: UnendedJob, nowMs: number): Promise<void>
  /** Cancels a job; null: there is no such job. */
  cancelJob(jobId: number, nowMs: number): Promise<Job | null>
  /** A stored value by name; null: there is none. */
  loadSetting(name: string): Promise<Uint8Array | null>
  /** Stores a value under a name that has none; returns what is stored there. */
  makeSetting(name: string, value: Uint8Array): Promise<Uint8Array>
  /** Stores a value by name. */
  saveSetting(name: string, value: Uint8Array): Promise<void>
}

/** What admin reads from the store; see `ReadSide`. */
export interface AdminReads {
  /** Counts for the metrics, as of `nowMs`. */
  counts(nowMs: number): Promise<StoreCounts>
  /** A page of parcels. It may hold fewer than asked for, even none, while there is a `next`. */
  listParcels(query: ParcelQuery): Promise<ParcelPage>
  /** Everything known about one parcel, by any of its identifiers; null: there is none. */
  inspectParcel(identifier: string): Promise<InspectedParcel | null>
  /** Every status that was the latest of any parcel, up to a thousand. */
  listStatuses(): Promise<readonly string[]>
  /** Lists jobs with ids below `before`, the newest first; null: from the newest on. */
  listJobs(query: { readonly before: number | null; readonly limit: number }): Promise<readonly Job[]>
  /** A job by id; null: there is none. */
  findJob(jobId: number): Promise<Job | null>
}

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
  /** From now on the key of every row that changes is kept, until the move ends. */
  begin(): Promise<void>
  count(table: CopiedTable): Promise<number>
  /** The oldest kept keys. A row that is read after its key is at least as new as the change. */
  changes(table: CopiedTable, limit: number): Promise<{ readonly marks: readonly number[]; readonly keys: readonly StoredRow[] }>
  /** Drops kept keys by their marks. */
  forget(table: CopiedTable, marks: readonly number[]): Promise<void>
  countChanges(): Promise<number>
  /** The last numbers given. */
  numbers(): Promise<StoreNumbers>
  /**
   * Lets nobody else write while `work` runs. When that resolves, the store is marked as moved and takes no writes any more; when it rejects, nothing has
   * changed. Rejects if others keep writing.
   */
  seal(work: () => Promise<void>): Promise<void>
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
