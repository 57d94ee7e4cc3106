import type { Job } from '../core/domain/admin/job.ts'
import type { Audited } from '../core/domain/admin/operator-action.ts'
import type { Refusal } from '../core/domain/ingest/refused-pushes.ts'
import type { Posted } from '../core/flow/write-side.ts'
import type { BackupEnd, BackupState } from './backups/backup.rules.ts'
import type { ManageBackups } from './backups/manage-backups.ts'
import type { Check } from './check/manage-check.ts'
import type { ErasureWrites } from './erasure/erasure-ports.ts'
import type { ManageErasures } from './erasure/manage-erasures.ts'
import type { TombstoneKeyKeeper } from './erasure/tombstone-key.ts'
import type { ManageJobs } from './jobs/manage-jobs.ts'
import type { ManageMoves } from './moving/manage-moves.ts'
import type { ManageRebuild } from './rebuild/manage-rebuild.ts'
import type { ListRefusals } from './refusals/list-refusals.ts'
import type { ManageRetention } from './retention/manage-retention.ts'
import type { Retention } from './retention/retention.rules.ts'

declare module '../core/http/use-cases.ts' {
  interface UseCases {
    readonly check: Check
    readonly manageBackups: Pick<ManageBackups, 'list' | 'start' | 'progressOf'>
    readonly manageErasures: ManageErasures
    readonly manageJobs: ManageJobs
    readonly manageRebuild: ManageRebuild
    readonly manageRetention: ManageRetention
    readonly refusals: ListRefusals
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
  interface WriteSide extends ErasureWrites, UpkeepWrites {}
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
  /** Cancels a job. What it has done stays done. A job that has ended does not change. Null: there is no such job. */
  cancelJob(request: Audited & { readonly jobId: number; readonly nowMs: number }): Promise<Job | null>
  /** Changes how long data is kept, and from which age on events are not recorded. Takes effect with the next batch. */
  adjustRetention(retention: Retention): Promise<void>
  /** Stores an explained refusal, and deletes the oldest refusals beyond `REFUSALS_KEPT`. */
  keepRefusal(refusal: Refusal): Promise<void>
}
