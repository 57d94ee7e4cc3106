import type { Job, JobTask, UnendedJob } from '../../domain/admin/job.ts'
import type { InspectedParcel, ParcelPage, ParcelQuery, StoreCounts } from '../../domain/admin/parcel-list.ts'

/** The verbs of admin that write; see `WriteSide`. Times are epoch milliseconds. */
export interface AdminWrites {
  /** The secret that signs the relay's tokens, created on first use and then kept. */
  tokenKey(): Promise<Uint8Array>
  /** Queues a job; null: too many have not ended. */
  startJob(request: { readonly task: JobTask; readonly by: string; readonly nowMs: number }): Promise<Job | null>
  /** Does a batch of the oldest unended job; `isDone`: there is none. Progress is in the store, so a restart continues there. */
  workOnJobs(request: { readonly limit: number; readonly nowMs: number }): Promise<{ readonly isDone: boolean }>
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
