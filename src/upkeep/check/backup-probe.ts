import type { Config } from '../../core/config/config.ts'
import type { Clock } from '../../core/flow/ports.ts'
import { namedAhead } from '../backups/backup.rules.ts'
import type { ManageBackups } from '../backups/manage-backups.ts'
import { judgeBackups, skipped, type Verdict } from './check.rules.ts'
import type { Probe } from './manage-check.ts'

type Backups = Awaited<ReturnType<ManageBackups['list']>>

interface BackupLists {
  readonly list: () => Promise<Pick<Backups, 'backups' | 'unreadable' | 'failing'>>
}

/** Makes the probe that checks how old the newest backup is. */
export function backupProbe(config: Config, backups: BackupLists, clock: Pick<Clock, 'now'>): Probe {
  return { name: 'backup', subject: null, look: () => judgeBackupsOf(config, backups, clock) }
}

export async function judgeBackupsOf({ backup, store }: Config, backups: BackupLists, clock: Pick<Clock, 'now'>): Promise<Verdict> {
  if (store.engine === 'postgres') return skipped('The store is on a server, which is backed up with its own tools.')
  const { directory, cron } = backup
  if (directory === null) return judgeBackups({ directory, cron, madeAtMs: [], ahead: [], failing: null, unreadable: null }, clock.now())
  const { backups: found, unreadable, failing } = await backups.list()
  const ahead = namedAhead(
    found.map(({ name }) => name),
    clock.now(),
  )
  return judgeBackups({ directory, cron, madeAtMs: found.map(({ madeAtMs }) => madeAtMs), ahead, failing, unreadable }, clock.now())
}
