import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../support/runner/tied-process.ts'

const HANG = { timeout: 60_000, interval: 50 }

/** Runs the planted test that ends as `ends` says. Resolves with the processes that the test started, and its worker. */
async function run(ends: string): Promise<readonly string[]> {
  const folder = temporaryFolder()
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/gate/left-behind/vitest.config.ts']
  const env = { PATH: process.env.PATH, ENDS: ends, TELLS: folder }
  const child = tieToTest(spawn(process.execPath, args, { ...ownGroup, env, stdio: 'ignore' }))
  await once(child, 'exit')
  const names = readdirSync(folder)
  expect(names.toSorted()).toEqual(['hook', 'test', 'worker'])
  return names.flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split(' '))
}

test.each(['it fails', 'it never ends', 'its worker is killed', 'the run is killed'])(
  'the processes of a test and their own children end when %s',
  async (ends) => {
    const started = await run(ends)
    expect(started).toHaveLength(5)
    await vi.waitFor(() => expect(started.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]), HANG)
  },
)
