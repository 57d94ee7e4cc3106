import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { CANARY, fileOf, minimal } from '../../console/cli/config-cases.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const BODY = '{"status":"Ingested"}'

function verify(args: readonly string[], { input = '', env = {} }: { readonly input?: string; readonly env?: NodeJS.ProcessEnv } = {}) {
  const run = shipped()
  const { status, stdout, stderr } = spawnSync(process.execPath, [...run.args, 'verify', ...args], {
    encoding: 'utf8',
    input,
    env: { ...run.env, ...env },
  })
  return { status, stdout, stderr }
}

function inFile(name: string, text: string): string {
  const path = join(temporaryFolder(), name)
  writeFileSync(path, text)
  return path
}

test('verify names the matching key of the config, and exits with 0', () => {
  const { status, stdout } = verify([inFile('body', BODY), '--signature', signBody(Buffer.from(BODY), CANARY), '--config', fileOf(minimal)])
  expect([status, stdout]).toEqual([0, 'The signature matches: webhook.sharedKeys[0].\n'])
})

test('verify says how the body and the signature were changed, and exits with 1', () => {
  const signature = Buffer.from(signBody(Buffer.from(BODY), CANARY), 'base64').toString('hex')
  const { status, stdout, stderr } = verify(['-', '--signature', signature, '--config', fileOf(minimal)], { input: `${BODY}\n` })
  expect([status, stderr]).toEqual([1, ''])
  expect(stdout).toMatch(
    /^The signature does not match\.\n- The signature is written in hexadecimal\..*\n- The body has lost or gained a newline/,
  )
  expect(stdout).toMatch(/it matches webhook\.sharedKeys\[0\]\.\n$/)
  expect(stdout).not.toContain(CANARY)
})

test('verify accepts keys from files and variables instead of a config', () => {
  const args = ['-', '--signature', signBody(Buffer.from(BODY), 'key-of-a-variable'), '--json', '--key-env', 'PUSH_KEY']
  const keyFile = inFile('key', 'key-of-a-file\n')
  const { status, stdout } = verify([...args, '--key-file', keyFile], { input: BODY, env: { PUSH_KEY: 'key-of-a-variable' } })
  expect([status, JSON.parse(stdout)]).toEqual([0, { verdict: 'valid', key: 'the key in PUSH_KEY', causes: [], cutShort: false }])
  expect(verify(args, { input: BODY }).stderr).toContain('the key in PUSH_KEY')
})

test('verify reports a missing file, a body that is too large, and a missing signature', () => {
  const config = fileOf(minimal)
  expect(verify(['/nowhere', '--signature', 'x', '--config', config])).toMatchObject({
    status: 1,
    stderr: 'parcel-relay: /nowhere: there is no such file or folder\n',
  })
  expect(verify(['/dev/zero', '--signature', 'x', '--config', config]).stderr).toContain('/dev/zero is larger than 67108864 bytes')
  expect(verify(['-']).status).toBe(2)
})
