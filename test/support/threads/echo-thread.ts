import { MessagePort, parentPort, workerData } from 'node:worker_threads'
import { serveVerbs } from '../../../src/core/runtime/threads/thread.ts'

if (parentPort === null) throw new Error('this file runs only as a thread')
const verbs = {
  echo: async (value: string) => value,
  fail: async (reason: string) => Promise.reject(new Error(reason)),
  never: () => new Promise<string>(() => {}),
  end: async () => process.exit(0),
  close: async () => 'closed',
}
serveVerbs(parentPort, verbs)
if (workerData instanceof MessagePort) serveVerbs(workerData, verbs)
