import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeAll, test } from 'vitest'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'

const { ENDS = '', TELLS = '' } = process.env

/** Starts a process that starts a child, as a tracer does, and waits until both run. */
async function start(name: string): Promise<void> {
  const child = tieToTest(spawn('/bin/sh', ['-c', 'sleep 3600 & echo $!; wait'], { ...ownGroup, stdio: ['ignore', 'pipe', 'inherit'] }))
  for await (const line of child.stdout) {
    writeFileSync(`${TELLS}/${name}`, `${child.pid} ${line}`)
    return
  }
}

beforeAll(() => start('hook'))

test('ends badly', async () => {
  await start('test')
  writeFileSync(`${TELLS}/worker`, `${process.pid}`)
  if (ENDS === 'it fails') throw new Error('on purpose')
  if (ENDS === 'it never ends') await pause(3_600_000)
  if (ENDS === 'its worker is killed') process.kill(process.pid, 'SIGKILL')
  if (ENDS === 'the run is killed') {
    process.kill(process.ppid, 'SIGKILL')
    await pause(3_600_000)
  }
})
