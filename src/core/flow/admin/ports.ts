import type { TroubleBegun, TroubleEnded } from '../../../console/problems/trouble.ts'
import type { BackupState, MadeBackup } from '../../../upkeep/backups/backup.rules.ts'
import type { Retention } from '../../../upkeep/retention/retention.rules.ts'
import type { ClockDoubt, OtherClocks } from '../../domain/admin/clock-record.ts'
import type { Job, JobTask } from '../../domain/admin/job.ts'
import type { Audited, OperatorAction } from '../../domain/admin/operator-action.ts'
import type { TallyFlush } from '../../domain/admin/tally.ts'
import type { EndedSession, TokenKeyRotation, TokenKeys } from '../../domain/admin/token-keys.ts'
import type { OperatorEvent } from '../../domain/delivery/operator-event.ts'
import type { BatchReport } from '../../domain/history/recording.ts'

/** The verbs of admin that write; see `WriteSide`. Times are epoch milliseconds. */
export interface AdminWrites {
  /** The keys that sign the relay's tokens. Makes the first key if there is none yet. */
  tokenKeys(): Promise<TokenKeys>
  rotateTokenKeys(request: TokenKeyRotation & Audited): Promise<TokenKeys>
  /** Queues a job; null: too many jobs have not ended. */
  startJob(request: Audited & { readonly task: JobTask; readonly by: string; readonly nowMs: number }): Promise<Job | null>
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
  /** Cancels a job. What it has done stays done. A job that has ended does not change. Null: there is no such job. */
  cancelJob(request: Audited & { readonly jobId: number; readonly nowMs: number }): Promise<Job | null>
  /** Stores an operator event, and the order (`action`) that caused it. Queues the event if the config names an endpoint for operator events. */
  recordOperatorEvent(event: OperatorEvent, nowMs: number, given?: Audited & Posted): Promise<void>
  /** Notifies operators that a trouble has begun, unless they were notified of it before. Returns whether it notified them now. */
  beginTrouble(begun: TroubleBegun & OfRole & Posted): Promise<boolean>
  /** Notifies operators that a trouble is over, if they were notified that it had begun. Returns whether it notified them now. */
  endTrouble(ended: TroubleEnded & OfRole): Promise<boolean>
  /** Notifies operators of jobs that have ended and of pushes that were quarantined. Resolves with the number of events. */
  tellOperators(request: { readonly nowMs: number }): Promise<number>
  /** Logs a session of the portal out, for all replicas. */
  endSession(ended: EndedSession): Promise<void>
  /** Adds an order that was carried out outside the store to the audit trail. */
  recordAction(action: OperatorAction): Promise<void>
  /** Adds counts to their hours and days. A repeated flush is added once. */
  addTallies(flush: TallyFlush): Promise<void>
  /** Does a batch of the retention pass that is under way, or begins a pass that is due. `isDone`: there is nothing to do now. */
  prune(request: { readonly nowMs: number }): Promise<PruneResult>
  /** Tells the part that writes how other clocks differ from ours. Returns why our clock is doubted; null: it is not. */
  lookAtClock(others: OtherClocks): Promise<ClockDoubt | null>
  /** Changes how long data is kept, and from which age on events are not recorded. Takes effect with the next batch. */
  adjustRetention(retention: Retention): Promise<void>
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

export interface PruneResult {
  readonly isDone: boolean
  /** Whether parcels were retired, which adds events to the feed. */
  readonly hasRetired: boolean
  /** Whether deliveries were cancelled. Later deliveries of the same parcels may then be sent. */
  readonly hasReordered: boolean
}

export interface BackupEnd {
  /** Null: the backup did not begin. */
  readonly jobId: number | null
  readonly name: string
  readonly nowMs: number
  readonly made: MadeBackup | null
  /** Null: the backup was made, or an operator has cancelled it. */
  readonly failure: string | null
}

/** Only the replica with this role may make the call; absent: any replica may. */
interface OfRole {
  readonly ofRole?: 'poller' | 'janitor'
}

interface Posted {
  /** Whether operators were told of the event before it could be stored. Then it is stored, and not queued for them. */
  readonly isPosted?: boolean | undefined
}
