import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { operatorEnv } from '../../support/relay/run-command.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { tieToTest } from '../../support/runner/tied-process.ts'

test('a command whose output cannot be written fails and says why', async () => {
  const relay = await relayOfTest()
  const full = openSync('/dev/full', 'w')
  onTestFinished(() => closeSync(full))
  const { args: launch, env } = shipped()
  for (const args of [['--version'], ['--help'], ['generate-key'], ['config', 'schema'], ['parcels'], ['status']]) {
    const child = tieToTest(
      spawn(process.execPath, [...launch, ...args], { env: { ...env, ...operatorEnv(relay) }, stdio: ['ignore', full, 'pipe'] }),
    )
    const said = child.stderr === null ? '' : text(child.stderr)
    const [code] = await once(child, 'exit')
    expect([args, code, await said]).toEqual([args, 1, 'parcel-relay: the output cannot be written: the disk is full\n'])
  }
})
