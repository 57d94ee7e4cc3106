import { parentPort } from 'node:worker_threads'
import { serveVerbs } from '../../core/runtime/threads/thread.ts'
import { backupsWithout } from './backups-without.ts'
import type { ComparingVerbs } from './hosted-backup-folder.ts'

if (parentPort === null) throw new Error('this file runs only as the thread that compares backups')
serveVerbs<ComparingVerbs>(parentPort, { without: backupsWithout })
