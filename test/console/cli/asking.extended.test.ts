import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createAuthority } from '../../support/network/private-authority.ts'
import { ADMIN } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'
import { operatorEnv, runCommand } from '../../support/relay/run-command.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'
import { testWith } from '../../support/runner/test-with.ts'

const LOGIN = { RELAY_USERNAME: ADMIN.username, RELAY_PASSWORD: ADMIN.password }

test('a command finds the relay by an address without a scheme, or with a slash at its end', async () => {
  const relay = await relayOfTest()
  const { host } = new URL(relay.internalUrl)
  for (const url of [host, `${relay.internalUrl}/`]) expect((await runCommand(['endpoints', '--url', url], LOGIN)).code).toBe(0)
})

test('an error says what answers at a wrong address, and what to do', async () => {
  const relay = await relayOfTest()
  const stderrAt = async (url: string) => (await runCommand(['endpoints', '--url', url], LOGIN)).stderr
  expect(await stderrAt(relay.publicUrl)).toMatch(/is the public listener of a relay.*internal listener/)
  expect(await stderrAt('127.0.0.1:9')).toMatch(/no relay answers at http:\/\/127\.0\.0\.1:9: nothing listens there\. Is it running/)
  expect(await stderrAt(`https://${new URL(relay.internalUrl).host}`)).toMatch(
    /does not speak TLS at this port.*Compare the scheme \(http or https\)/,
  )
  expect(await stderrAt('ftp://127.0.0.1')).toMatch(/--url must be an address such as http:\/\/127\.0\.0\.1:8081, and is ftp:/)
  const unset = await runCommand(['endpoints'], { ...operatorEnv(relay), RELAY_PASSWORD: '' })
  expect([unset.code, unset.stderr]).toEqual([1, expect.stringContaining('set RELAY_USERNAME and RELAY_PASSWORD')])
  const wrong = await runCommand(['endpoints'], { ...operatorEnv(relay), RELAY_PASSWORD: 'wrong' })
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('the relay refuses the login')])
})

testWith('openssl')('commands report an untrusted certificate, and --ca or RELAY_CA makes them trust it', async () => {
  const folder = temporaryFolder()
  const authority = createAuthority(folder)
  authority.sign('localhost')
  const tls = { certFile: join(folder, 'localhost.pem'), keyFile: join(folder, 'localhost.key') }
  const relay = await relayOfTest({ listen: { internal: { host: '127.0.0.1', port: 0, tls } } })
  const { port } = new URL(relay.internalUrl)
  const env = { ...LOGIN, RELAY_URL: `https://localhost:${port}` }
  const doubting = await runCommand(['parcels'], env)
  expect([doubting.code, doubting.stderr]).toEqual([1, expect.stringMatching(/is not trusted: an unknown authority.*--ca or RELAY_CA/)])
  expect((await runCommand(['parcels', '--ca', authority.caFile], env)).code).toBe(0)
  expect((await runCommand(['deliveries'], { ...env, RELAY_CA: authority.caFile, RELAY_URL: `localhost:${port}` })).code).toBe(0)
  const elsewhere = await runCommand(['parcels', '--ca', authority.caFile], { ...env, RELAY_URL: `https://127.0.0.1:${port}` })
  expect(elsewhere.stderr).toMatch(/the certificate of 127\.0\.0\.1:\d+ is for another name/)
  const plain = await runCommand(['parcels', '--url', `http://localhost:${port}`], LOGIN)
  expect(plain.stderr).toMatch(/With TLS its address begins with https:\/\/localhost/)
})
