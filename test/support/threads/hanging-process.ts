import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { endProcess, hostOnThread } from '../../../src/core/runtime/threads/thread.ts'

const [sign = ''] = process.argv.slice(2)
if (sign !== '') {
  await hostOnThread(new URL('./hanging-thread.ts', import.meta.url), { name: 'hanging', data: sign, youngMb: 4 })
  while (!existsSync(sign)) await pause(10)
}
await endProcess(3)
