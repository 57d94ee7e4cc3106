import type { Config } from '../../core/config/config.ts'
import type { LostKeys } from '../../core/domain/delivery/endpoint-keys.ts'
import type { Clock } from '../../core/flow/ports.ts'
import { behindLinks } from '../../core/store/sqlite/lock.ts'
import { permissionWarnings } from '../../core/store/sqlite/whole-file.ts'
import { namedAhead } from '../backups/backup.rules.ts'
import type { ManageBackups } from '../backups/manage-backups.ts'
import { readStorageState } from '../erasure/clean-storage.ts'
import type { RetentionReport } from '../retention/retention.rules.ts'
import {
  failed,
  judgeBackups,
  judgeDisk,
  judgeErasure,
  judgeRetention,
  type MeasuredDisk,
  ok,
  skipped,
  type Verdict,
  warning,
} from './check.rules.ts'
import { keptFor } from './config-probes.ts'
import type { Probe } from './manage-check.ts'

/**
 * @param lost keys of endpoints that cannot be decrypted; null: all can be decrypted
 * @param fault why the key file cannot be used; null: it can, or is not needed
 */
export function judgeAtRestKeys({ secrets, store }: Config, lost: LostKeys | null, fault: string | null): Verdict {
  if (fault !== null) return failed(fault)
  if (lost !== null)
    return failed(
      `The keys of ${lost.endpoints} ${lost.endpoints === 1 ? 'endpoint' : 'endpoints'} cannot be decrypted, so nothing is sent there. Restore ${lost.where}.`,
    )
  if (secrets.atRestKeys.length > 0) return ok('The secrets in the store are encrypted with the keys of secrets.atRestKeys.')
  return store.engine === 'sqlite'
    ? ok(
        'The secrets in the store are encrypted with the key file beside it, which the relay makes when it first needs one. Back that file up too.',
      )
    : failed('A store on PostgreSQL needs secrets.atRestKeys, the same on all replicas.')
}

/** Checks whether other users of the machine can read the store. @param path null: the store is on a server */
export function filesProbe(path: string | null): Probe {
  return {
    name: 'files',
    subject: null,
    async look() {
      if (path === null) return skipped('The store is on a server.')
      const warnings = permissionWarnings(behindLinks(path))
      return warnings.length === 0 ? ok('Only the user of the relay can read the store.') : warning(warnings.join('\n'))
    },
  }
}

/** Checks whether old data is removed. @param last reports on the last retention pass; null: none is known */
export function retentionProbe(config: Config, last: () => Promise<RetentionReport | null>, clock: Pick<Clock, 'now'>): Probe {
  return { name: 'retention', subject: null, look: async () => judgeRetention(await last(), keptFor(config), clock.now()) }
}

/** Checks whether the store's file may still contain erased data. @param path null: the store is on a server */
export function erasureProbe(path: string | null): Probe {
  return {
    name: 'erasure',
    subject: null,
    async look() {
      if (path === null) return skipped('The store is on a server, which keeps old versions of rows. The manual says how to remove them.')
      return judgeErasure(readStorageState(path))
    },
  }
}

/** @param measure null: the store is on a server, which looks after its own disk */
export function diskProbe(config: Config, measure: () => Promise<MeasuredDisk | null>): Probe {
  return {
    name: 'disk',
    subject: null,
    async look() {
      const disk = await measure()
      if (disk === null || !Number.isFinite(disk.freeBytes)) return skipped('The store is on a server, which looks after its disk.')
      return judgeDisk(disk, config.limits.freeSpaceBytesMin)
    },
  }
}

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
