import type { Job, UnendedJob } from '../../domain/admin/job.ts'
import type { LeftStore } from '../../domain/admin/left-store.ts'
import type { ActionPage, ActionQuery, FormerOrder, ListedTarget } from '../../domain/admin/operator-action.ts'
import type { FilteredCount, InspectedParcel, ParcelFilter, ParcelPage, ParcelQuery, StoreCounts } from '../../domain/admin/parcel-list.ts'
import type { RestoreRecord } from '../../domain/admin/restore.ts'
import type { RetentionState } from '../../domain/admin/retention.ts'
import type { Tally, TallySpan } from '../../domain/admin/tally.ts'
import type { OperatorEventQuery, ToldEvent } from '../../domain/delivery/operator-event.ts'
import type { AgedReads, RetentionTx } from './retention/retention-store.ts'

/** The store as admin uses it inside one transaction; see `WriteTx`. */
export interface AdminTx extends RetentionTx {
  /** The jobs that have not ended, the oldest first. */
  listUnendedJobs(limit: number): Promise<readonly UnendedJob[]>
  loadSetting(name: string): Promise<Uint8Array | null>
}

/** The reads of admin; see `ReadSide`. */
export interface AdminReads extends AgedReads {
  retentionState(): Promise<RetentionState>
  /** The restores of the store, the oldest first. */
  listRestores(): Promise<readonly RestoreRecord[]>
  /** The old stores that moves have copied and left in place, the oldest first. */
  listLeftStores(): Promise<readonly LeftStore[]>
  /** Lists the damaged rows that a start skips, in words for the log. */
  listDamaged(): Promise<readonly string[]>
  counts(nowMs: number): Promise<StoreCounts>
  /** Cheaper than `counts`. */
  countQuarantined(): Promise<number>
  /** Even a short or empty page has a `next` if more parcels may follow. */
  listParcels(query: ParcelQuery): Promise<ParcelPage>
  /** Counts what `listParcels` lists over all pages. Reads at most `max` rows and one. */
  countParcels(filter: ParcelFilter, max: number): Promise<FilteredCount>
  /** Null: no parcel has this identifier. */
  inspectParcel(identifier: string): Promise<InspectedParcel | null>
  /** The first identifier of each parcel. Deleted parcels are absent. */
  nameParcels(parcelIds: readonly number[]): Promise<ReadonlyMap<number, string>>
  /** Every status that was ever the latest status of a parcel, up to a thousand. */
  listStatuses(): Promise<readonly string[]>
  /** Lists jobs with ids below `before`, the newest first; null: from the newest. */
  listJobs(query: { readonly before: number | null; readonly limit: number }): Promise<readonly Job[]>
  findJob(jobId: number): Promise<Job | null>
  /** The newest first. */
  listOperatorEvents(query: OperatorEventQuery): Promise<readonly ToldEvent[]>
  /** The oldest first. */
  listTallies(query: TallyQuery): Promise<readonly Tally[]>
  /** The audit trail, the newest first. */
  listActions(query: ActionQuery): Promise<ActionPage>
  /** Which of these parcels, deliveries and pushes exist. Leaves out things of other kinds. */
  existingTargets(targets: readonly ListedTarget[]): Promise<readonly ListedTarget[]>
  /** Which of these sessions were logged out. */
  endedAmong(sessions: readonly string[]): Promise<readonly string[]>
  /** Finds the order that a form of the portal has given; null: none. `form`: its id. */
  findFormerOrder(form: string): Promise<FormerOrder | null>
}

export interface TallyQuery {
  readonly span: TallySpan
  readonly kind: string
  readonly fromMs: number
  readonly toMs: number
}
