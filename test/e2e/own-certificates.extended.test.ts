import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createAuthority } from '../support/network/private-authority.ts'
import { loggedInAt } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

test('status and overview tell an expired certificate of the relay, and one that expires soon', async () => {
  const folder = temporaryFolder()
  const authority = createAuthority(folder)
  const tls = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') }
  const write = (days: number) => {
    const { cert, key } = authority.sign('localhost', days)
    writeFileSync(tls.certFile, cert)
    writeFileSync(tls.keyFile, key)
  }
  write(-1)
  const host = '127.0.0.1'
  const relay = await relayOfTest({ listen: { public: { host, port: 0, tls }, internal: { host, port: 0 } } }, { folder })
  const operate = await operatorOf(relay)
  const portal = await loggedInAt(relay.internalUrl)
  const problems = async () => (await operate('GET', '/relay/overview')).body
  const told = (kind: string, severity: string) => ({ problems: expect.arrayContaining([expect.objectContaining({ kind, severity })]) })

  expect(await problems()).toMatchObject({ verdict: 'problems', ...told('certificate_expired', 'problem') })
  expect((await portal.get('/')).text).toContain('The certificate of the public listener has expired')

  write(3)
  await relay.reloadWith()
  expect(await problems()).toMatchObject(told('certificate_expiring', 'warning'))

  writeFileSync(tls.certFile, authority.sign('localhost', 90).cert)
  await relay.reloadWith()
  expect(await problems()).toMatchObject(told('reload_failed', 'warning'))

  write(90)
  await relay.reloadWith()
  expect(JSON.stringify(await problems())).not.toMatch(/certificate_|reload_failed/)
})
