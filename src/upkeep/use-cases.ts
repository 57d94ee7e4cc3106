import type { Job } from '../core/domain/admin/job.ts'
import type { Audited } from '../core/domain/admin/operator-action.ts'
import type { ErasureRules, StorageState } from '../core/domain/history/erased.ts'
import type { BatchReport, Reprocessed } from '../core/domain/history/recording.ts'
import type { DismissedHeld, HeldRange, HeldSelection } from '../core/domain/ingest/inbox.ts'
import type { Refusal } from '../core/domain/ingest/refused-pushes.ts'
import type { Posted } from '../core/flow/write-side.ts'
import type { BackupEnd, BackupState } from './backups/backup.rules.ts'
import type { ManageBackups } from './backups/manage-backups.ts'
import type { Check } from './check/running-check.ts'
import type { ErasedParcels, SearchedMentions, SearchedPage } from './erasure/erasure.rows.ts'
import type { ManageErasures } from './erasure/manage-erasures.ts'
import type { TombstoneKeyKeeper } from './erasure/tombstone-key.ts'
import type { ManageInbox } from './inbox/manage-inbox.ts'
import type { ManageJobs } from './jobs/manage-jobs.ts'
import type { ManageMoves } from './moving/manage-moves.ts'
import type { ManageRebuild } from './rebuild/rebuild.routes.ts'
import type { ListRefusals } from './refusals/kept-refusals.ts'
import type { ReplayMany } from './replay/manage-replays.ts'
import type { ManageRetention } from './retention/manage-retention.ts'
import type { Retention } from './retention/retention.rules.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly check: Check
    readonly manageBackups: Pick<ManageBackups, 'list' | 'start' | 'progressOf'>
    readonly manageErasures: ManageErasures
    readonly manageInbox: ManageInbox
    readonly manageJobs: ManageJobs
    readonly manageRebuild: ManageRebuild
    readonly manageRetention: ManageRetention
    readonly refusals: ListRefusals
    readonly replayMany: ReplayMany
    readonly moves: Pick<ManageMoves, 'start' | 'progressOf'>
  }
}

declare module '../core/wiring/relay.ts' {
  interface Relay {
    readonly backups: ManageBackups
    readonly tombstoneKey: TombstoneKeyKeeper
  }
}

declare module '../core/flow/write-side.ts' {
  interface WriteSide extends ErasureWrites, InboxWrites, UpkeepWrites {}
}

/** The other verbs of this wing that write. Times are epoch milliseconds. */
interface UpkeepWrites {
  /** Saves the progress of a move or a backup. `isWanted`: the job was not cancelled. */
  noteProgress(request: { readonly jobId: number; readonly done: number; readonly nowMs: number }): Promise<{ readonly isWanted: boolean }>
  /**
   * Copies the store to a file. Others may write to the store meanwhile, and the copy includes what they have written. `sequence`: the last
   * sequence of the feed when copying began. Rejects if copying is stopped or fails. Throws `not_backed_up` for a store on a server.
   */
  copyStore(request: { readonly file: string }): Promise<{ readonly sequence: number }>
  /** In pages of the store; null: no copy is being made. */
  copyProgress(): Promise<{ readonly done: number; readonly total: number } | null>
  /** Makes `copyStore` reject. */
  stopCopy(): Promise<void>
  backupState(): Promise<BackupState>
  /** Saves the result of a backup, ends its job, and notifies operators if backups begin to fail or work again. Returns whether it notified them. */
  endBackup(end: BackupEnd & Posted): Promise<boolean>
  /** Notifies operators of new restores. Resolves with their number. */
  tellRestores(request: { readonly nowMs: number }): Promise<number>
  /** Ends the jobs of backups that were interrupted because the relay was stopped or killed. */
  endLeftBackups(nowMs: number): Promise<void>
  /**
   * Does a batch of the oldest unended job that is no move or backup. `hasWorked`: there was such a job. `isDone`: no such job is left. The store
   * keeps the progress, so the work continues after a restart.
   */
  workOnJobs(request: { readonly limit: number; readonly nowMs: number }): Promise<{
    readonly hasWorked: boolean
    readonly isDone: boolean
    /** Whether parcels were retired, which adds events to the feed. */
    readonly hasRetired: boolean
    /** The reprocessed pushes; null: the job was of another kind. */
    readonly report: BatchReport | null
    /** Null: the job was no rebuild. */
    readonly rebuilt: RebuildNews | null
  }>
  /** Cancels a job. What it has done stays done. A job that has ended does not change. Null: there is no such job. */
  cancelJob(request: Audited & { readonly jobId: number; readonly nowMs: number }): Promise<Job | null>
  /** Does a batch of the retention pass that is under way, or begins a pass that is due. `isDone`: there is nothing to do now. */
  prune(request: { readonly nowMs: number }): Promise<PruneResult>
  /** Changes how long data is kept, and from which age on events are not recorded. Takes effect with the next batch. */
  adjustRetention(retention: Retention): Promise<void>
  /** Stores an explained refusal, and deletes the oldest refusals beyond `REFUSALS_KEPT`. */
  keepRefusal(refusal: Refusal): Promise<void>
}

/** The verbs that erase parcels. Times are epoch milliseconds. */
export interface ErasureWrites {
  /** Returns the encrypted key of the tombstones (null: no key exists), and whether tombstones use it. */
  tombstoneKey(): Promise<{ readonly sealed: string | null; readonly isUsed: boolean }>
  /** Stores an encrypted key if the stored key is still `before` (null: no key). Returns the key that is stored afterwards. */
  keepTombstoneKey(request: { readonly before: string | null; readonly sealed: string }): Promise<string>
  useTombstoneKey(key: Uint8Array): Promise<void>
  /** Changes the time after which an erased identifier may belong to a new parcel. */
  adjustErasure(rules: ErasureRules): Promise<void>
  /** Returns the identifiers that a parcel has, that were erased before, or whose erasure has not ended. */
  findErasable(request: { readonly identifiers: readonly string[] }): Promise<readonly string[]>
  /**
   * Erases the parcels of identifiers in one transaction, and stores tombstones, also of identifiers without a parcel. Notes all of their
   * identifiers as unfinished. The order in the audit trail gets the counts and the marks. `dryRun`: only reports what would be erased.
   */
  eraseParcels(
    request: Audited & { readonly identifiers: readonly string[]; readonly nowMs: number; readonly dryRun: boolean },
  ): Promise<ErasedParcels>
  /** Removes identifiers from a page of records that are not parcels. `dryRun`: only reports what would be removed. */
  searchMentions(request: SearchedPage & { readonly identifiers: readonly string[]; readonly dryRun: boolean }): Promise<SearchedMentions>
  /** Lists the identifiers of erased parcels for which not all records were searched, perhaps because the relay was killed. */
  unfinishedErasures(): Promise<readonly string[]>
  /**
   * Forgets unfinished identifiers, after all records were searched for them. `isLate`: some may have named parcels that had been erased before.
   * `unreadable`: how many records nobody could read.
   */
  endErasures(request: { readonly identifiers: readonly string[]; readonly isLate: boolean; readonly unreadable: number }): Promise<void>
  /** Removes erased data from the files of the store, as far as the database engine can do this. */
  cleanStorage(): Promise<StorageState>
  /** After a restore: returns how many identifiers were erased since the backup, and the encrypted key of their tombstones. */
  missedErasures(): Promise<{ readonly sealedKey: string | null; readonly count: number }>
  /** After a restore: like `searchMentions`, for all identifiers that were erased since the backup. */
  searchMissed(page: SearchedPage): Promise<SearchedMentions>
  /**
   * After a restore: erases again the parcels that were erased since the backup. Each call looks at a page of identifiers above `after`.
   * `next` null: this was the last page. `names`: the identifiers of the erased parcels.
   */
  repeatErasures(page: { readonly after: string }): Promise<{ readonly next: string | null; readonly names: readonly string[] }>
  /**
   * Stores the tombstones of the repeated erasures, and adds to the audit trail that they were repeated. After that, these erasures are not
   * repeated again. `identifiers`: how many were erased again.
   */
  settleErasures(request: { readonly nowMs: number; readonly identifiers: number }): Promise<void>
}

/** The verbs that write to the inbox. */
interface InboxWrites {
  /**
   * Reprocesses a quarantined or expired push of the inbox as if it had arrived now. If it still cannot be recorded, it stays in the inbox
   * with the new reason.
   */
  reprocess(request: Audited & { readonly inboxId: number; readonly nowMs: number }): Promise<Reprocessed>
  /** Reprocesses up to `limit` selected pushes in the same way, the oldest first, with inbox ids above `after` and up to `upTo`. */
  reprocessHeld(request: ReprocessRequest): Promise<ReprocessedBatch>
  /**
   * Dismisses a quarantined push, which stays unrecorded unless it is reprocessed. `done`: the push is dismissed. `settled`: it was not in
   * quarantine. `unknown`: there is no such push.
   */
  dismissPush(request: Audited & { readonly inboxId: number }): Promise<'done' | 'settled' | 'unknown'>
  /** Dismisses up to `limit` quarantined pushes of a reason, the oldest first, with inbox ids above `after` and up to `upTo`. */
  dismissHeld(request: Audited & Pick<HeldSelection, 'reason'> & HeldRange): Promise<DismissedHeld>
}

interface ReprocessRequest extends Audited, HeldRange {
  readonly selection: HeldSelection
  readonly nowMs: number
}

interface ReprocessedBatch {
  readonly report: BatchReport
  /** The inbox id of the last push of this batch; null: there are no more. */
  readonly next: number | null
}

/** How many parcels a batch of a rebuild has compared, by result. */
export interface RebuildNews {
  readonly equal: number
  /** Parcels that differ. They were not corrected, because the rebuild only compared. */
  readonly differing: number
  readonly corrected: number
  /** Parcels that could not be compared. */
  readonly left: number
  /** Whether corrections were added to the feed. */
  readonly hasChanged: boolean
}

interface PruneResult {
  readonly isDone: boolean
  /** Whether parcels were retired, which adds events to the feed. */
  readonly hasRetired: boolean
  /** Whether deliveries were cancelled. Later deliveries of the same parcels may then be sent. */
  readonly hasReordered: boolean
}
