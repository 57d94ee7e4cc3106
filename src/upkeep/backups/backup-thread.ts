import { parentPort, workerData } from 'node:worker_threads'
import { serveVerbs } from '../../core/runtime/threads/thread.ts'
import type { BackupData, BackupVerbs } from './backup-folder.ts'
import { makeBackup } from './make-backup.ts'

/** The thread that checks a copy of the store and moves it to the folder of backups. The check takes long, and the move may never end. */
if (parentPort === null) throw new Error('this file runs only as the backup thread')
// Only `hosted-backup-folder.ts` starts this thread, with this data.
const { order } = workerData as BackupData
const work = makeBackup(order)

serveVerbs<BackupVerbs>(parentPort, {
  advance: async () => work.next().value,
  async giveUp() {
    work.return({ made: { name: order.name, atMs: order.madeAtMs, bytes: 0 }, unremoved: null })
  },
})
