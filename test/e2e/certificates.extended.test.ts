import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { needsRestart } from '../../src/assembly/reloading.ts'
import { listenInTest } from '../support/network/listen.ts'
import { createAuthority } from '../support/network/private-authority.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ask, logIn, writeConfig } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

/** Returns the serial number of the certificate that a listener shows. */
function shownBy(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

test('a reload uses a renewed certificate on both listeners, and ignores one without its key', async () => {
  const folder = temporaryFolder()
  const authority = createAuthority(folder)
  const files = (name: string) => ({ certFile: join(folder, `${name}-cert.pem`), keyFile: join(folder, `${name}-key.pem`) })
  const write = (name: string, pair: { readonly cert: string; readonly key: string }) => {
    writeFileSync(files(name).certFile, pair.cert)
    writeFileSync(files(name).keyFile, pair.key)
  }
  for (const name of ['public', 'moved']) write(name, authority.sign('localhost'))
  const sections = (publicTls: string) => ({
    listen: {
      public: { host: '127.0.0.1', port: 0, tls: files(publicTls) },
      internal: { host: '127.0.0.1', port: 0, tls: files('public') },
    },
  })
  const relay = await relayOfTest(sections('public'), { folder })
  const shown = async () => [await shownBy(relay.publicUrl), await shownBy(relay.internalUrl)]
  const first = await shown()
  expect(first[0]).toBe(first[1])

  write('public', authority.sign('localhost'))
  await relay.reloadWith()
  const second = await shown()
  expect(second[0]).toBe(second[1])
  expect(second[0]).not.toBe(first[0])

  // The certificate file is new, but the key file still belongs to the old certificate.
  writeFileSync(files('public').certFile, authority.sign('localhost').cert)
  await relay.reloadWith()
  expect(await shown()).toEqual(second)
  expect(relay.lines.filter(({ message }) => message.includes('the previous one stays in use'))).toHaveLength(2)
  expect(JSON.stringify(relay.lines)).toContain('does not fit')

  // A config that names other certificate files needs no restart.
  const [before, after] = ['public', 'moved'].map((name) => loadConfig(writeConfig(folder, NO_CARRIER, sections(name))))
  if (before === undefined || after === undefined) throw new Error('there are two')
  expect(needsRestart(before, after)).toEqual([])
  await relay.reloadWith(sections('moved'))
  const [moved, stays] = await shown()
  expect(stays).toBe(second[1])
  expect([...first, ...second]).not.toContain(moved)
})

test('the metrics say when the certificate of a listener expires', async () => {
  const folder = temporaryFolder()
  const pair = createAuthority(folder).sign('localhost')
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  writeFileSync(certFile, pair.cert)
  writeFileSync(keyFile, pair.key)
  const host = '127.0.0.1'
  const listen = { public: { host, port: 0, tls: { certFile, keyFile } }, internal: { host, port: 0 } }
  const relay = await relayOfTest({ listen }, { folder })
  const metrics = await (await fetchDocumented(`${relay.internalUrl}/metrics`)).text()
  const [, listener, until] = /^relay_certificate_expiry_timestamp_seconds\{listener="(\w+)"\} (\S+)$/m.exec(metrics) ?? []
  // The certificate is valid for two days.
  expect([listener, Math.ceil((Number(until) - Date.now() / 1000) / 86_400)]).toEqual(['public', 2])
})

test('a reload uses the renewed certificate authorities of the carrier and of endpoints', async () => {
  const folder = temporaryFolder()
  const [old, renewed] = [createAuthority(temporaryFolder()), createAuthority(temporaryFolder())]
  const server = createServer(renewed.sign('localhost'), (req, res) => {
    req.resume()
    if (req.url === '/auth/token') res.end('{"token":"t"}')
    else res.writeHead(req.url === '/hook' ? 200 : 404).end()
  })
  const url = `https://localhost:${await listenInTest(server)}`
  const caFile = join(folder, 'authority.pem')
  writeFileSync(caFile, old.ca)
  const sections = {
    upstream: { caFile },
    delivery: { allowNetworks: ['127.0.0.0/8', '::1/128'] },
    endpoints: [{ name: 'shop', url: `${url}/hook`, sharedKey: 'a-key-of-an-endpoint', caFile }],
  }
  const relay = await relayOfTest(sections, { folder, carrierUrl: url })
  const token = await logIn(relay.internalUrl)
  const operate = await operatorOf(relay)
  const tried = async () => (await operate('POST', '/relay/endpoints/1/test')).body
  const asked = async (identifier: string) => (await ask(relay.internalUrl, token, `/v1/status/${identifier}/all`)).status
  expect(await asked('AB000000001SE')).toBe(503)
  expect(await tried()).toMatchObject({ reason: 'certificate_untrusted' })

  writeFileSync(caFile, renewed.ca)
  await relay.reloadWith()
  expect(await tried()).toMatchObject({ status: 200 })
  await expect.poll(() => asked('AB000000002SE'), { timeout: 60_000 }).toBe(404)

  writeFileSync(caFile, 'no certificate')
  await expect(relay.reloadWith()).rejects.toThrow('contains no certificate')
})
