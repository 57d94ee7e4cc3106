import { concernOfVerdict, type FindConcerns, type KeepLook } from '../../console/problems/concern.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { judgeBackupsOf } from '../check/local-probes.ts'

export function backupProblems({ settings, backups, clock }: Pick<Relay, 'settings' | 'backups' | 'clock'>, keep: KeepLook): FindConcerns {
  const look = keep(() => judgeBackupsOf(settings(), backups, clock))
  return async ({ isBackupFailing }) => {
    const verdict = await look()
    // That backups fail is a problem of its own.
    return isBackupFailing ? [] : concernOfVerdict('backup_old', 'No recent backup is known', verdict)
  }
}
