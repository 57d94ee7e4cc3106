import { execFileSync } from 'node:child_process'
import { getPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'

const THREAD = `
  import { getPriority } from 'node:os'
  import { parentPort } from 'node:worker_threads'
  import { lowerPriority } from ${JSON.stringify(new URL('../../../src/runtime/threads/priority.ts', import.meta.url).href)}
  lowerPriority()
  parentPort.postMessage(getPriority())
`

test.runIf(process.platform === 'linux')('a thread that goes behind does so alone: whoever started it stays where it was', async () => {
  const before = getPriority()
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(THREAD)}`))
  const its = await new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject))
  expect(its).toBe(Math.max(before, 4))
  expect(getPriority()).toBe(before)
})

const PROCESS = `
  import { lowerHelperPriority } from ${JSON.stringify(new URL('../../../src/runtime/threads/priority.ts', import.meta.url).href)}
  import { readdirSync, readFileSync } from 'node:fs'
  import { getPriority } from 'node:os'
  const nice = () => readdirSync('/proc/self/task').map((id) => [readFileSync('/proc/self/task/' + id + '/comm', 'utf8').trim(), getPriority(Number(id))])
  const before = nice()
  lowerHelperPriority()
  process.stdout.write(JSON.stringify({ before, after: nice() }))
`

test.runIf(process.platform === 'linux')(
  'threads on which the platform compiles and collects go behind all others, and no other does',
  () => {
    const said = execFileSync(process.execPath, ['--input-type=module', '--eval', PROCESS], { encoding: 'utf8' })
    const { before, after }: Record<'before' | 'after', [name: string, nice: number][]> = JSON.parse(said)
    const isHelper = ([name]: [string, number]) => name === 'V8Worker'
    expect(before.filter(isHelper).length).toBeGreaterThan(0)
    expect(after).toEqual(before.map((task) => (isHelper(task) ? [task[0], 19] : task)))
  },
)
