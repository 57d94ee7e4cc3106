import { execFileSync } from 'node:child_process'
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

const PROCESS = `
  import { putHelpersBehind } from ${JSON.stringify(new URL('../../src/run/priority.ts', import.meta.url).href)}
  import { readdirSync, readFileSync } from 'node:fs'
  import { getPriority } from 'node:os'
  const read = (id, file) => readFileSync('/proc/self/task/' + id + '/' + file, 'utf8').trim()
  // Behind the name in parentheses the policy is the 39th.
  const policy = (id) => Number(read(id, 'stat').split(') ').at(-1).split(' ')[38])
  const threads = () => readdirSync('/proc/self/task').map((id) => ({ id, name: read(id, 'comm'), nice: getPriority(Number(id)), policy: policy(id) }))
  // What starts a program makes threads of its own, so as many are looked at as there were.
  const before = threads()
  await putHelpersBehind()
  const ids = before.map(({ id }) => id)
  process.stdout.write(JSON.stringify({ before, after: threads().filter(({ id }) => ids.includes(id)) }))
`
const OTHER = 0
const IDLE = 5

interface Thread {
  readonly id: string
  readonly name: string
  readonly nice: number
  readonly policy: number
}

function threadsOf(path: string | undefined): { readonly before: readonly Thread[]; readonly after: readonly Thread[] } {
  const env = { ...process.env, PATH: path }
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '--eval', PROCESS], { encoding: 'utf8', env }))
}

const isHelper = ({ name }: Thread) => name === 'V8Worker'

test.runIf(process.platform === 'linux')(
  'threads on which the platform compiles and collects get only what is idle, and no other thread does',
  () => {
    const { before, after } = threadsOf(process.env.PATH)
    expect(before.filter(isHelper).length).toBeGreaterThan(0)
    expect(before.map(({ policy }) => policy)).toEqual(before.map(() => OTHER))
    expect(after).toEqual(before.map((thread) => (isHelper(thread) ? { ...thread, nice: 19, policy: IDLE } : thread)))
  },
)

test.runIf(process.platform === 'linux')('where no program changes how a thread is scheduled they are as nice as can be', () => {
  const { before, after } = threadsOf('/nowhere')
  expect(after).toEqual(before.map((thread) => (isHelper(thread) ? { ...thread, nice: 19 } : thread)))
})
