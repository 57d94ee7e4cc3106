import { parentPort } from 'node:worker_threads'
import { serveVerbs } from '../../src/run/thread.ts'

if (parentPort === null) throw new Error('this file is a thread; it is not run by itself')
serveVerbs(parentPort, {
  echo: async (value: string) => value,
  fail: async (reason: string) => Promise.reject(new Error(reason)),
  close: async () => 'closed',
})
