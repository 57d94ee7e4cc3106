import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createAuthority } from '../support/network/private-authority.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { commandsOf } from '../support/relay/run-command.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

test('each replica tells what only another can know: its expired certificate, its failed reload', async () => {
  const folder = temporaryFolder()
  const authority = createAuthority(folder)
  const tls = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') }
  const { cert, key } = authority.sign('localhost', -1)
  writeFileSync(tls.certFile, cert)
  writeFileSync(tls.keyFile, key)
  const host = '127.0.0.1'
  const shared = await onPostgres()
  const listen = { public: { host, port: 0, tls }, internal: { host, port: 0 } }
  const expired = await relayOfTest({ ...shared, listen }, { folder })
  const well = await relayOfTest(shared)
  const at = await operatorOf(well)
  const problems = async () => (await at('GET', '/relay/overview')).body
  const told = (kind: string, title: string) => ({
    problems: expect.arrayContaining([
      expect.objectContaining({ kind, replica: expect.any(String), title: expect.stringMatching(`^${title}.*\\(replica .+\\)$`) }),
    ]),
  })

  await expect.poll(problems).toMatchObject(told('certificate_expired', 'The certificate of the public listener has expired'))
  expect(await problems()).toMatchObject({ verdict: 'problems' })
  expect((await (await loggedInAt(well.internalUrl)).get('/')).text).toContain(
    'The certificate of the public listener has expired (replica ',
  )
  expect((await commandsOf(well)('status')).stdout).toContain('The certificate of the public listener has expired (replica ')

  writeFileSync(tls.certFile, authority.sign('localhost', 90).cert)
  await expired.reloadWith()
  await expect.poll(problems).toMatchObject(told('reload_failed', 'The last reload could not use everything'))

  await expired.stop()
  await expect.poll(async () => JSON.stringify(await problems())).not.toMatch(/certificate_|reload_failed/)
})
