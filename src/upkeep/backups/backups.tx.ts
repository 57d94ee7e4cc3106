import { UNENDED_MAX } from '../../core/domain/admin/job.ts'
import { AppError } from '../../core/domain/errors.ts'
import { type Posted, recordOperatorEvent } from '../../core/flow/audit.tx.ts'
import { saveJob } from '../../core/store/admin/jobs.ts'
import { beginTrouble, endTrouble } from '../../core/store/admin/operations.ts'
import type { StoreCopier } from '../../core/store/engine.ts'
import { saveSetting } from '../../core/store/settings.ts'
import type { Transactions, WriteTx } from '../../core/store/write-store.ts'
import type { BackupEnd } from './backup.rules.ts'
import { BACKUP_STATE, BACKUP_WAS_STOPPED, type BackupState, NO_BACKUPS, parseBackupState, stateAfterBackup } from './backup.rules.ts'

/** The subject under which the store records since when backups fail. */
const SUBJECT = 'backup'

/** Says why a store on a database server cannot be backed up by the relay. */
export const ON_A_SERVER =
  'The store is on PostgreSQL, which is backed up with its own tools: pg_dump, or a base backup and the WAL after it. ' +
  'Export its tombstones too, and more often: they say what was erased since (docs/operating.md, "Restore"). ' +
  'After a restore or a point-in-time recovery, run "parcel-relay restore --mark" before a relay starts on it.'

/** Creates the functions that copy the store and save the results of backups. */
export function createBackups(store: Transactions, copier: StoreCopier | undefined) {
  return {
    /**
     * Copies the store to a file. Others may write to the store meanwhile, and the copy includes what they have written. `sequence`: the last
     * sequence of the feed when copying began. Rejects if copying is stopped or fails. Throws `not_backed_up` for a store on a server.
     */
    async copyStore({ file }: { readonly file: string }) {
      if (copier === undefined) throw new AppError('not_backed_up', ON_A_SERVER)
      const { last: sequence } = await store.transaction((tx) => tx.feedSpan())
      await copier.copy(file)
      return { sequence }
    },
    /** In pages of the store; null: no copy is being made. */
    copyProgress: async () => copier?.progress() ?? null,
    /** Makes `copyStore` reject. */
    async stopCopy() {
      copier?.stop()
    },
    backupState: () => store.transaction(loadState),
    /** Saves the result of a backup, ends its job, and notifies operators if backups begin to fail or work again. Returns whether it notified them. */
    endBackup: (end: BackupEnd & Posted) =>
      store.transaction(async (tx) => {
        const state = stateAfterBackup(await loadState(tx), end)
        await saveSetting(tx, BACKUP_STATE, new TextEncoder().encode(JSON.stringify(state)))
        if (end.jobId !== null) await endJob(tx, end.jobId, end)
        return await tell(tx, end)
      }),
    /** Ends the jobs of backups that were interrupted because the relay was stopped or killed. */
    endLeftBackups: (nowMs: number) =>
      store.transaction(async (tx) => {
        const left = (await tx.listUnendedJobs(UNENDED_MAX)).filter(({ task }) => task.kind === 'backup')
        await Promise.all(left.map(({ jobId }) => endJob(tx, jobId, { nowMs, made: null, failure: BACKUP_WAS_STOPPED })))
      }),
  }
}

async function loadState(tx: WriteTx): Promise<BackupState> {
  const kept = await tx.loadSetting(BACKUP_STATE)
  return kept === null ? NO_BACKUPS : parseBackupState(new TextDecoder().decode(kept))
}

/** Ends the job of a backup. If an operator has cancelled the job, it stays cancelled. */
async function endJob(tx: WriteTx, jobId: number, { made, failure, nowMs }: Pick<BackupEnd, 'made' | 'failure' | 'nowMs'>): Promise<void> {
  const job = (await tx.listUnendedJobs(UNENDED_MAX)).find((one) => one.jobId === jobId)
  if (job === undefined) return
  await saveJob(tx, { ...job, state: made === null ? 'failed' : 'done', failure, endedAtMs: nowMs }, nowMs)
}

async function tell(tx: WriteTx, { made, failure, name, nowMs, isPosted }: BackupEnd & Posted): Promise<boolean> {
  if (failure !== null) {
    const hasBegun = await beginTrouble(tx, SUBJECT, nowMs)
    if (hasBegun) await recordOperatorEvent(tx, { event: 'backup_failed', backup: name, reason: failure }, nowMs, isPosted)
    return hasBegun
  }
  const sinceMs = made === null ? null : await endTrouble(tx, SUBJECT)
  if (sinceMs === null) return false
  await recordOperatorEvent(tx, { event: 'backup_recovered', backup: name, since: new Date(sinceMs).toISOString() }, nowMs)
  return true
}
