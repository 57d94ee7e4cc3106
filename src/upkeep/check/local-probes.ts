import type { Verdict } from '../../console/problems/concern.ts'
import type { Config } from '../../core/config/config.ts'
import { readCertificates, readNamedFile } from '../../core/config/named-file.ts'
import { formatDuration } from '../../core/domain/amounts.ts'
import type { LostKeys } from '../../core/domain/delivery/endpoint-keys.ts'
import type { Clock } from '../../core/flow/ports.ts'
import { behindLinks } from '../../core/store/sqlite/lock.ts'
import { permissionWarnings } from '../../core/store/sqlite/whole-file.ts'
import { readTlsPair } from '../../core/wiring/certificates.ts'
import { namedAhead } from '../backups/backup.rules.ts'
import type { ManageBackups } from '../backups/manage-backups.ts'
import { readStorageState } from '../erasure/clean-storage.ts'
import type { RetentionReport } from '../retention/retention.rules.ts'
import {
  type CheckLine,
  failed,
  judgeBackups,
  judgeCertificate,
  judgeDisk,
  judgeErasure,
  judgeOpenFiles,
  judgeRetention,
  type MeasuredDisk,
  ok,
  type Probe,
  skipped,
  warning,
} from './check.rules.ts'

/** Makes the probes that check the config and the files that it names, for everything that a start would refuse. */
export function configProbes(config: Config, clock: Pick<Clock, 'now'>): readonly Probe[] {
  return [
    { name: 'config', subject: null, look: async () => settingsOf(config) },
    { name: 'keys', subject: 'webhook.sharedKeys', look: async () => judgeSharedKeys(config) },
    ...listenersOf(config, clock),
    ...authoritiesOf(config),
    ...clientCertificatesOf(config, clock),
    { name: 'open_files', subject: null, look: async () => judgeOpenFiles(openFilesLimit(), config.limits.connections) },
  ]
}

function settingsOf({ conflicts, warnings }: Config): Verdict | readonly CheckLine[] {
  const line = (verdict: Verdict): CheckLine => ({ name: 'config', subject: null, ...verdict })
  const lines = [...conflicts.map(failed), ...warnings.map(warning)].map(line)
  return lines.length > 0 ? lines : ok('It has no mistakes.')
}

/** Warns if one key has two purposes, because such a key has to be replaced in two places at once. */
function judgeSharedKeys({ webhook, endpoints, operator }: Config): Verdict {
  const keys = webhook.sharedKeys.map((key) => key.reveal())
  if (new Set(keys).size < keys.length) return warning('The same key is listed twice.')
  const others = endpoints
    .map(({ name, sharedKey }) => ({ name: `endpoint ${name}`, sharedKey }))
    .concat(operator === null || operator.sharedKey === null ? [] : [{ name: 'operator', sharedKey: operator.sharedKey }])
  const same = others.find(({ sharedKey }) => keys.includes(sharedKey.reveal()))
  if (same !== undefined) return warning(`The carrier and ${same.name} have the same key. Give each its own.`)
  return ok(keys.length === 1 ? 'One key verifies pushes.' : `${keys.length} keys verify pushes.`)
}

function listenersOf({ listen }: Config, clock: Pick<Clock, 'now'>): readonly Probe[] {
  return (['public', 'internal'] as const).flatMap((subject): readonly Probe[] => {
    const { tls } = listen[subject]
    if (tls === null) return []
    return [
      {
        name: 'certificate',
        subject,
        look: async () => judgeCertificate(readTlsPair(`listen.${subject}.tls`, tls).untilMs, clock.now()),
      },
    ]
  })
}

function authoritiesOf({ upstream, endpoints }: Config): readonly Probe[] {
  const named = [{ subject: 'upstream.caFile', file: upstream.caFile }].concat(
    endpoints.map(({ name, caFile }) => ({ subject: `caFile of endpoint ${name}`, file: caFile })),
  )
  return named.flatMap(({ subject, file }): readonly Probe[] => {
    if (file === null) return []
    const look = async () => {
      readCertificates(subject, file)
      return ok('Its certificates can be read.')
    }
    return [{ name: 'certificate', subject, look }]
  })
}

function clientCertificatesOf({ endpoints }: Config, clock: Pick<Clock, 'now'>): readonly Probe[] {
  return endpoints.flatMap(({ name, clientCert }): readonly Probe[] => {
    if (clientCert === null) return []
    const subject = `clientCert of endpoint ${name}`
    return [{ name: 'certificate', subject, look: async () => judgeCertificate(readTlsPair(subject, clientCert).untilMs, clock.now()) }]
  })
}

/** Reads how many files this process may open; null: the system is not Linux, and does not tell. */
export function openFilesLimit(): number | null {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readNamedFile('limits', '/proc/self/limits').toString()) ?? []
    return limit === undefined ? null : Number(limit)
  } catch {
    return null
  }
}

/** Lists in a text how long each kind of data is kept. */
function keptFor({ retention }: Pick<Config, 'retention'>): string {
  const kept = Object.entries(retention).map(([name, ms]) => `${name.replace(/Ms$/, '')} ${formatDuration(ms)}`)
  return kept.join(', ')
}

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
  const [directory, cron] = [backup?.directory ?? null, backup?.cron ?? null]
  if (directory === null) return judgeBackups({ directory, cron, madeAtMs: [], ahead: [], failing: null, unreadable: null }, clock.now())
  const { backups: found, unreadable, failing } = await backups.list()
  const ahead = namedAhead(
    found.map(({ name }) => name),
    clock.now(),
  )
  return judgeBackups({ directory, cron, madeAtMs: found.map(({ madeAtMs }) => madeAtMs), ahead, failing, unreadable }, clock.now())
}
