import { type EventDescriptions, type EventsOf, since, text } from '../../console/events/operator-events.ts'
import { concernOfVerdict, type FindConcerns, type KeepLook } from '../../console/problems/concern.ts'
import type { ConcernDescriptions } from '../../console/problems/concern-kinds.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { judgeBackupsOf } from '../check/local-probes.ts'

export const BACKUP_EVENTS = {
  /** A backup failed after one that had succeeded. Further failures in a row cause no event. */
  backup_failed: {
    kind: 'warn',
    state: 'backup failed',
    page: '/backups',
    tell: (of) => [`The backup ${of('backup')} could not be made: ${of('reason')}`],
    members: () => ({ backup: text(), reason: text() }),
  },
  backup_recovered: {
    kind: 'ok',
    state: 'backups recovered',
    page: '/backups',
    tell: (of) => [`Backups are made again: ${of('backup')}`],
    members: () => ({ backup: text(), since: since() }),
  },
} satisfies EventDescriptions

declare module '../../core/domain/delivery/operator-event.ts' {
  interface OperatorEvents extends EventsOf<typeof BACKUP_EVENTS> {}
}

export const BACKUP_KINDS = {
  backup_old: { canWait: true, runbook: ['a-backup-is-missing-or-old', 'a backup is missing or old'] },
} satisfies ConcernDescriptions

declare module '../../console/problems/concern-kinds.ts' {
  interface ConcernKinds extends Readonly<Record<keyof typeof BACKUP_KINDS, unknown>> {}
}

export function backupProblems({ settings, backups, clock }: Pick<Relay, 'settings' | 'backups' | 'clock'>, keep: KeepLook): FindConcerns {
  const look = keep(() => judgeBackupsOf(settings(), backups, clock))
  return async ({ isBackupFailing }) => {
    const verdict = await look()
    // That backups fail is a problem of its own.
    return isBackupFailing ? [] : concernOfVerdict('backup_old', 'No recent backup is known', verdict)
  }
}
