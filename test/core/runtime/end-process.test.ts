import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { ownGroup, tieToTest } from '../../support/runner/tied-process.ts'

const PROGRAM = fileURLToPath(new URL('../../support/threads/hanging-process.ts', import.meta.url))

async function howItEnds(how: 'thread' | 'alone'): Promise<unknown> {
  const sign = how === 'alone' ? '' : join(temporaryFolder(), 'stands-still')
  const child = tieToTest(spawn(process.execPath, [PROGRAM, sign], { ...ownGroup, stdio: 'inherit' }))
  return await once(child, 'exit')
}

test('a process is ended even if one of its threads hangs in a system call', async () => {
  expect(await howItEnds('alone')).toEqual([3, null])
  expect(await howItEnds('thread')).toEqual([null, 'SIGKILL'])
}, 60_000)
