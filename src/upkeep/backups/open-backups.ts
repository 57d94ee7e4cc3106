import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../core/config/config.ts'
import { nameKey } from '../../core/ops/vault.ts'
import { startSchedule } from '../../core/runtime/schedule.ts'
import type { AtRest } from '../../core/wiring/at-rest-keys.ts'
import type { Relay } from '../../core/wiring/relay.ts'
import { VERSION } from '../../package-files.ts'
import { backupFolder } from './backup-folder.ts'
import { removeCopy } from './copy-store.ts'
import { type ManageBackupsPorts, openManageBackups } from './manage-backups.ts'

type Parts = Pick<Relay, 'path' | 'write' | 'reads' | 'disk' | 'clock' | 'unstored' | 'closing' | 'log'>

/** Assembles the part that makes backups of the store: on request and by the schedule. */
export async function openBackups(config: Config, parts: Parts, { keyFilePath }: AtRest) {
  const { disk, clock, closing, log } = parts
  const isFile = config.store.engine === 'sqlite'
  const copy = `${parts.path}.backup`
  let settings = config
  // If an earlier run was killed, it may have left a copy.
  if (isFile) removeCopy(copy)
  const manage = await openManageBackups({
    ...parts,
    folder: isFile ? backupFolder : null,
    settings: () => settingsOf(settings),
    order: { copy, version: VERSION, keyFile: keyFilePath, keys: () => keyNamesOf(settings) },
    room: () => {
      const { freeBytes, storeBytes, logBytes } = disk.state()
      return { freeBytes, freeBytesMin: settings.limits.freeSpaceBytesMin, storeBytes: storeBytes + logBytes }
    },
    trouble: disk.trouble,
    pause: (ms) => sleep(ms, undefined, { ref: false }),
  } satisfies ManageBackupsPorts)
  closing.add(() => manage.stop())

  let schedule: ReturnType<typeof startSchedule> | null = null
  const begin = () => {
    const { cron } = settingsOf(settings)
    if (cron === null) return
    if (isFile) schedule = startSchedule(cron, () => void manage.scheduled(), clock.now, settings.zone)
    else log.warn({}, 'backup.cron has no effect: the store is on PostgreSQL, which is backed up with its own tools')
  }
  const end = async () => {
    await schedule?.stop()
    schedule = null
  }
  closing.add(end)
  return {
    manage,
    /** Begins to make backups at the times of the schedule. */
    begin,
    /** Applies the settings of a reloaded config. */
    async reload(next: Config) {
      settings = next
      await end()
      begin()
    },
  }
}

function settingsOf({ backup }: Config) {
  const directory = backup?.directory ?? null
  return { cron: backup?.cron ?? null, keep: backup?.keep ?? 0, directory: directory === null ? null : resolve(directory) }
}

function keyNamesOf({ secrets }: Config): readonly string[] {
  return secrets.atRestKeys.map((key) => nameKey(Buffer.from(key.reveal(), 'base64')))
}
