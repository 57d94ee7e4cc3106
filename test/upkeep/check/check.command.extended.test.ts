import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CANARY, fileOf, withLines } from '../../console/cli/config-cases.ts'
import { createAuthority } from '../../support/network/private-authority.ts'
import { ADMIN, type Sections, startTestRelay } from '../../support/relay/relay.ts'
import { shipped } from '../../support/runner/shipped.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'

/** Runs the command asynchronously, because the relay runs in this process. */
function check(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const run = shipped()
  return new Promise<{ readonly code: unknown; readonly stdout: string; readonly stderr: string }>((resolve) => {
    execFile(process.execPath, [...run.args, 'check', ...args], { env: { ...run.env, ...more } }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

async function startRelay(sections: Sections = {}) {
  const folder = temporaryFolder()
  const relay = await startTestRelay(folder, 'http://127.0.0.1:9', sections)
  onTestFinished(() => relay.stop())
  return { ...relay, config: join(folder, 'relay.yaml') }
}

const LOGIN = { RELAY_USERNAME: ADMIN.username, RELAY_PASSWORD: ADMIN.password }

test('check lists the mistakes of a config that serve would refuse, and exits with 1', async () => {
  const { code, stdout } = await check(['--config', fileOf(withLines('unknwon: 1')), '--url', 'http://127.0.0.1:9'])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^- +relay +No relay answers at http:\/\/127\.0\.0\.1:9\.\nFAIL +config +.*relay\.yaml:\d+:\d+ unknwon/m)
})

test('messages about a config file show its full path', async () => {
  const { code, stdout } = await check(['--config', 'config/nothing.yaml', '--url', 'http://127.0.0.1:9'])
  expect([code, stdout]).toEqual([1, expect.stringContaining(`  ${resolve('config/nothing.yaml')}:1:1 the config file cannot be read`)])
})

test('check says at which address it looked for a relay if the config cannot be used', async () => {
  const config = fileOf(withLines('unknwon: 1', 'listen: { internal: { port: 9 } }'))
  const looked = `The relay was looked for at http://127.0.0.1:8081, the default address, because the address in ${config} cannot be read.`
  const { RELAY_URL: _, ...env } = process.env
  expect((await check(['--config', config], env)).stdout).toMatch(new RegExp(`^(WARN|-   ) +relay .*${looked.replaceAll('.', '\\.')}`, 'm'))
  expect((await check(['--config', config, '--url', 'http://127.0.0.1:9'])).stdout).not.toContain('was looked for')
})

test('check of a relay that still starts asks for no config file that it was not given', async () => {
  const { code, stdout } = await check([], { RELAY_URL: 'http://127.0.0.1:9', ...LOGIN, PWD: temporaryFolder() })
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(/^FAIL +relay +No relay answers at http:\/\/127\.0\.0\.1:9\. .*--config FILE\./),
  ])
  expect(stdout).not.toContain('config/example.yaml')
})

test('check prints JSON, and fails for a config on PostgreSQL without at-rest keys', async () => {
  const config = fileOf(withLines('store: postgres://relay:secret@127.0.0.1:9/relay', 'listen: { internal: { port: 9 } }'))
  const { code, stdout } = await check(['--config', config, '--json'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({
    ok: false,
    lines: expect.arrayContaining([
      { name: 'config', subject: null, state: 'failed', message: expect.stringContaining('needs secrets.atRestKeys') },
      { name: 'push', subject: null, state: 'skipped', message: expect.any(String) },
    ]),
  })
  expect(stdout).not.toMatch(new RegExp(`${CANARY}|secret@`))
})

test('check asks the running relay, and shows what fails there', async () => {
  const relay = await startRelay()
  const { code, stdout } = await check(['--config', relay.config], { ...LOGIN, RELAY_URL: relay.internalUrl })
  expect(code).toBe(1)
  for (const line of [
    /^ok +relay +Version /m,
    /^ok +config +\/.*\/relay\.yaml has no mistakes/m,
    /^ok +push +A signed push/m,
    /^FAIL +credentials +.*nothing listens there/m,
  ])
    expect(stdout).toMatch(line)
  expect(stdout).toMatch(/\n1 of \d+ fail/)
})

test('check without --config shows the running relay’s check of its own config', async () => {
  const relay = await startRelay()
  const { stdout } = await check([], { ...LOGIN, RELAY_URL: relay.internalUrl })
  expect(stdout).not.toMatch(/cannot be read/)
  expect(stdout).toMatch(/\n1 of \d+ fail/)
})

test('check without a login says that a relay runs, and does not disturb it', async () => {
  const relay = await startRelay()
  const { stdout } = await check(['--config', relay.config, '--url', relay.internalUrl])
  expect(stdout).toMatch(/^WARN +relay +A relay runs at .* Set RELAY_USERNAME and RELAY_PASSWORD/m)
  expect(stdout).toMatch(/^- +store +.*is in use by process/m)
  expect((await fetch(`${relay.internalUrl}/readyz`)).status).toBe(200)
  const wrong = await check(['--config', relay.config], { ...LOGIN, RELAY_PASSWORD: 'wrong', RELAY_URL: relay.internalUrl })
  expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringMatching(/^FAIL +relay +the relay refuses the login/m)])
})

test('check says which variable the shell lacks, and asks a running relay', async () => {
  const relay = await startRelay()
  const ofVariables = readFileSync(relay.config, 'utf8').replace('a-shared-key-for-tests-only', '{ env: KEY_OF_TEST }')
  const config = join(temporaryFolder(), 'relay.yaml')
  writeFileSync(config, ofVariables)
  const unset = "KEY_OF_TEST is not set in this shell, so the file cannot be checked here. The relay's own environment may have it."
  const asked = await check(['--config', config], { ...LOGIN, RELAY_URL: relay.internalUrl })
  expect(asked.stdout).toMatch(/^ok +relay +Version /m)
  expect(asked.stdout).toMatch(/^ok +push +A signed push/m)
  expect(asked.stdout).toMatch(/^WARN +config +KEY_OF_TEST is not set in this shell/m)
  expect(asked.stdout).not.toMatch(/^FAIL +config/m)
  const without = await check(['--config', config, '--url', relay.internalUrl])
  expect([without.code, without.stdout]).toEqual([0, expect.stringContaining(unset)])
  const alone = await check(['--config', config, '--url', 'http://127.0.0.1:9'])
  expect([alone.code, alone.stdout]).toEqual([
    1,
    expect.stringMatching(/^FAIL +config +.*KEY_OF_TEST[\s\S]*\nWARN +config +KEY_OF_TEST is not set/m),
  ])
  writeFileSync(config, `${ofVariables}\nunknwon: 1\n`)
  const wrong = await check(['--config', config], { ...LOGIN, RELAY_URL: relay.internalUrl })
  expect(wrong.stdout).toMatch(/^FAIL +config +.*unknwon/m)
})

test('check warns of an endpoint whose key in the file differs from the running relay’s', async () => {
  const endpoints = ['shop', 'lab'].map((name) => ({ name, url: 'http://127.0.0.1:9/', sharedKey: `the-key-of-${name}-for-tests` }))
  const relay = await startRelay({ endpoints })
  const run = async () => (await check(['--config', relay.config], { ...LOGIN, RELAY_URL: relay.internalUrl })).stdout
  expect(await run()).toMatch(/^ok +keys endpoints +The running relay has the keys of the file\.$/m)
  writeFileSync(relay.config, readFileSync(relay.config, 'utf8').replace('the-key-of-shop-for-tests', 'another-key-for-the-shop'))
  const changed = await run()
  expect(changed).toMatch(
    /^WARN +keys endpoints\.shop +The file has another key \(fingerprint [0-9a-f]{8}\) than the running relay \([0-9a-f]{8}\)\. If/m,
  )
  expect(changed).not.toMatch(/endpoints\.lab|another-key/)
})

testWith('openssl')('check trusts the authority in RELAY_CA, or the certificate that the config names', async () => {
  const folder = temporaryFolder()
  const authority = createAuthority(folder)
  authority.sign('localhost')
  const tls = { certFile: join(folder, 'localhost.pem'), keyFile: join(folder, 'localhost.key') }
  const relay = await startRelay({ listen: { internal: { host: '127.0.0.1', port: 0, tls } } })
  const RELAY_URL = relay.internalUrl.replace('127.0.0.1', 'localhost')
  const trusting = await check(['--config', relay.config], { ...LOGIN, RELAY_URL, RELAY_CA: authority.caFile })
  expect(trusting.stdout).toMatch(/^WARN +certificate internal +It is valid for 1 more day/m)
  const doubting = await check(['--config', relay.config], { ...LOGIN, RELAY_URL })
  expect(doubting.stdout).toMatch(/^- +relay +No relay answers/m)
  // At the address in the config, check accepts the certificate that the config names, whatever the host name.
  const config = readFileSync(relay.config, 'utf8').replace(
    /(internal:\s+host: 127\.0\.0\.1\s+port: )0/,
    `$1${new URL(relay.internalUrl).port}`,
  )
  writeFileSync(relay.config, config)
  expect((await check(['--config', relay.config], LOGIN)).stdout).toMatch(/^ok +relay +Version /m)
  authority.sign('other')
  writeFileSync(relay.config, config.replaceAll('localhost', 'other'))
  expect((await check(['--config', relay.config], LOGIN)).stdout).toMatch(/^- +relay +No relay answers/m)
})
