import type { Unstored } from '../../console/events/unstored.ts'
import type { Part, Writes } from '../../core/flow/relay-part.ts'
import { type BackupFolder, type BackupState, type MadeBackup, NO_BACKUPS, stateAfterBackup } from './backup.rules.ts'

interface Attempt {
  readonly name: string
  readonly jobId: number | null
}

export type BackupRecord = Awaited<ReturnType<typeof openRecord>>

export interface BackupRecordPorts extends Part<'clock', 'now'>, Part<'log', 'warn' | 'error'>, Writes<'backupState'> {
  readonly folder: BackupFolder | null
  readonly unstored: Pick<Unstored, 'write'>
}

const SKIPPED = {
  moving: 'the store is being moved',
  made: 'the last one was made for the same time, because the clock was put back since',
} as const

/** Opens the record of how backups ended. */
export async function openRecord({ write, folder, clock, unstored, log }: BackupRecordPorts) {
  let state = folder === null ? NO_BACKUPS : await write.backupState()
  let failures = 0
  let skipped = 0
  return {
    state: (): BackupState => state,
    failures: () => failures,
    skipped: () => skipped,
    /** Notes that a scheduled backup was not begun. `because`: the backup that is being made meanwhile, or why none is needed or possible. */
    skip(name: string, because: Attempt | keyof typeof SKIPPED) {
      skipped += 1
      const [fields, reason] =
        typeof because === 'string' ? [{}, SKIPPED[because]] : [{ running: because.name, job: because.jobId }, 'another is being made']
      log.warn({ backup: name, ...fields }, `a scheduled backup was skipped: ${reason}`)
    },
    /** Saves the result of a backup. Never rejects. */
    async end({ name, jobId }: Attempt, made: MadeBackup | null, failure: string | null) {
      if (failure !== null) {
        failures += 1
        log.error({ backup: name, job: jobId, reason: failure }, 'a backup could not be made; the relay goes on without it')
      }
      const end = { jobId, name, nowMs: clock.now(), made, failure }
      const event = failure === null || state.failing !== null ? null : { event: 'backup_failed' as const, backup: name, reason: failure }
      state = stateAfterBackup(state, end)
      await unstored.write({ kind: 'backup', end, event })
    },
  }
}
