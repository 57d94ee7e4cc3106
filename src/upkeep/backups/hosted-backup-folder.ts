import { setTimeout as pause } from 'node:timers/promises'
import { hostOnThread } from '../../core/runtime/threads/thread.ts'
import { discardCopy, listBackups } from './backup-folder.ts'
import type { BackupComparison, BackupFolder, BackupMaker, BackupOrder } from './backup-ports.rows.ts'

/** The data with which the backup thread is started. */
export interface BackupData {
  readonly order: BackupOrder
}

/** The functions of the backup thread that other threads can call. */
export interface BackupVerbs {
  advance: BackupMaker['advance']
  /** Stops making the backup, and removes it if it is not complete. */
  giveUp(): Promise<void>
}

/** The functions of the thread that compares backups with the store. Reading them may take long, or never end. */
export interface ComparingVerbs {
  without(request: BackupComparison): Promise<readonly string[]>
}

const YOUNG_MB = 16
/** How long the thread may take to clean up, in milliseconds. A folder that does not answer must not delay the stop of the relay. */
const GIVE_UP_MS = 2000

/** The folder of backups. Each backup gets a thread for the work that may take long or never end. */
export const backupFolder: BackupFolder = {
  list: listBackups,
  async without(request) {
    const file = new URL(`./comparing-thread${import.meta.url.slice(-3)}`, import.meta.url)
    const { verbs, end } = await hostOnThread<ComparingVerbs>(file, { name: 'comparing', data: null, youngMb: YOUNG_MB })
    try {
      return await verbs.without(request)
    } finally {
      await Promise.race([end(), pause(GIVE_UP_MS, undefined, { ref: false })])
    }
  },
  discard: discardCopy,
  async openMaker(order) {
    // Use the extension of this file: sources run as `.ts` in development and as `.js` from `dist`.
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
