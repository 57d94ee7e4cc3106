import { setTimeout as pause } from 'node:timers/promises'
import type { BackupFolder, BackupMaker, BackupOrder } from '../../flow/admin/backups/backup-ports.ts'
import { hostOnThread } from '../../runtime/threads/thread.ts'
import { listBackups } from '../../store/sqlite/backups/backup-folder.ts'

/** Start data of the backup thread. */
export interface BackupData {
  readonly order: BackupOrder
}

/** What the backup thread does. */
export interface BackupVerbs {
  advance: BackupMaker['advance']
  /** Leaves nothing of a backup that is not done. */
  giveUp(): Promise<void>
}

const YOUNG_MB = 16
/** How long the thread may take to tidy up. A folder that does not answer must not hold up a stop. */
const GIVE_UP_MS = 2000

/** The folder of backups. What may take long or never end runs on a thread of its own, for one backup. */
export const backupFolder: BackupFolder = {
  list: listBackups,
  async openMaker(order) {
    // The extension of this file, because sources run as `.ts` in development and as `.js` from `dist`.
    const file = new URL(`./backup-thread${import.meta.url.slice(-3)}`, import.meta.url)
    const data: BackupData = { order }
    const { verbs, end } = await hostOnThread<BackupVerbs>(file, { name: 'backup', data, youngMb: YOUNG_MB })
    return {
      advance: verbs.advance,
      async close() {
        await Promise.race([verbs.giveUp().catch(() => undefined), pause(GIVE_UP_MS, undefined, { ref: false })])
        await Promise.race([end(), pause(GIVE_UP_MS, undefined, { ref: false })])
      },
    }
  },
}
