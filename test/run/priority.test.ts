import { getPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'

const THREAD = `
  import { getPriority } from 'node:os'
  import { parentPort } from 'node:worker_threads'
  import { goBehind } from ${JSON.stringify(new URL('../../src/run/priority.ts', import.meta.url).href)}
  goBehind()
  parentPort.postMessage(getPriority())
`

test.runIf(process.platform === 'linux')('a thread that goes behind does so alone: whoever started it stays where it was', async () => {
  const before = getPriority()
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(THREAD)}`))
  const its = await new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject))
  expect(its).toBe(Math.max(before, 4))
  expect(getPriority()).toBe(before)
})
