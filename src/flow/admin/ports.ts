import type { Job, JobTask, UnendedJob } from '../../domain/admin/job.ts'
import type { InspectedParcel, ParcelPage, ParcelQuery, StoreCounts } from '../../domain/admin/parcel-list.ts'

/** The verbs of admin that write; see `WriteSide`. */
export interface AdminWrites {
  /** The secret the relay signs its own tokens with: made on first use, then kept. */
  tokenKey(): Promise<Uint8Array>
  /** Begins a job; null: too many have not ended. */
  startJob(request: { readonly task: JobTask; readonly by: string; readonly nowMs: number }): Promise<Job | null>
  /** Does a stretch of the oldest job that has not ended; `isDone`: there is none. Where it is stands in the store, so a restart goes on from there. */
  workOnJobs(request: { readonly limit: number; readonly nowMs: number }): Promise<{ readonly isDone: boolean }>
  /** Ends a job where it is; one that has ended stays as it ended. Null: there is none. */
  cancelJob(request: { readonly jobId: number; readonly nowMs: number }): Promise<Job | null>
}

/** What admin needs of the store inside one transaction; see `WriteTx`. */
export interface AdminTx {
  insertJob(task: JobTask, by: string, nowMs: number): Promise<Job>
  /** The oldest first. */
  listUnendedJobs(limit: number): Promise<readonly UnendedJob[]>
  saveJob(job: UnendedJob, nowMs: number): Promise<void>
  cancelJob(jobId: number, nowMs: number): Promise<Job | null>
  loadSetting(name: string): Promise<Uint8Array | null>
  /** Keeps a value under a name that has none; gives what is kept there. */
  makeSetting(name: string, value: Uint8Array): Promise<Uint8Array>
  saveSetting(name: string, value: Uint8Array): Promise<void>
}

/** What admin reads of the store; see `ReadSide`. */
export interface AdminReads {
  counts(nowMs: number): Promise<StoreCounts>
  /** A page of parcels; it may hold fewer than asked for, even none, while there is a `next`. */
  listParcels(query: ParcelQuery): Promise<ParcelPage>
  /** All that is known of one parcel, by any of its identifiers; null: unknown. */
  inspectParcel(identifier: string): Promise<InspectedParcel | null>
  /** Every status that was the latest of any parcel, up to a thousand. */
  listStatuses(): Promise<readonly string[]>
  /** The newest first, with ids below `before`. */
  listJobs(query: { readonly before: number | null; readonly limit: number }): Promise<readonly Job[]>
  findJob(jobId: number): Promise<Job | null>
}
