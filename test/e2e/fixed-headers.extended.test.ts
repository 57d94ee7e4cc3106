import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { expect, test, vi } from 'vitest'
import { VERSION } from '../../src/package-files.ts'
import { pushBody } from '../support/history/builders.ts'
import { listenInTest } from '../support/network/listen.ts'
import { createAuthority } from '../support/network/private-authority.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, type Sections } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'

const KEY = 'the-key-of-the-endpoint'
const CANARY = 'Bearer canary-value-of-a-header'
const MASKED = '[redacted]'

async function start(sections: Sections = {}) {
  const folder = temporaryFolder()
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'] }, log: { level: 'debug' }, ...sections }, { folder })
  return { ...relay, folder, operate: await operatorOf(relay) }
}

test('an endpoint gets its fixed headers, which no answer, log line or file of the store shows', async () => {
  const receiver = await receiverOfTest()
  const { operate, publicUrl, folder, lines, stop } = await start()
  const headers = { Authorization: CANARY, 'X-Tenant': 'north' }
  const added = await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url, headers })
  expect(added.body.headers).toEqual({ authorization: MASKED, 'x-tenant': MASKED })
  const path = `/relay/endpoints/${String(added.body.id)}`
  await push(publicUrl, pushBody())
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1))
  expect(receiver.pushes[0]?.headers).toMatchObject({ authorization: CANARY, 'x-tenant': 'north', 'user-agent': `parcel-relay/${VERSION}` })
  // Null removes a header, and a header that is not named stays. A rotation or another change does not touch headers.
  expect((await operate('PATCH', path, { headers: { 'x-tenant': null, 'X-Key': 'k' } })).body.headers).toEqual({
    authorization: MASKED,
    'x-key': MASKED,
  })
  await operate('POST', `${path}/rotate`, { sharedKey: null, at: 'now' })
  await operate('PATCH', path, { concurrency: 2 })
  await operate('POST', `${path}/test`)
  expect(receiver.pushes[1]?.headers).toMatchObject({ authorization: CANARY, 'x-key': 'k', 'relay-test': 'true' })
  expect(receiver.pushes[1]?.headers).not.toHaveProperty('x-tenant')
  await vi.waitFor(async () => expect((await operate('GET', '/relay/deliveries?state=delivered')).body.deliveries).toHaveLength(1))
  const shown = await operate('GET', '/relay/deliveries/1')
  expect(shown.body.request).toMatchObject({ headers: { authorization: MASKED, 'user-agent': `parcel-relay/${VERSION}` } })
  const answers = [added, shown, await operate('GET', path), await operate('GET', '/relay/endpoints'), await operate('GET', '/relay/audit')]
  await stop()
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)).toString('latin1'))
  for (const text of [...answers.map((answer) => answer.text), JSON.stringify(lines), ...files]) expect(text).not.toContain(CANARY)
})

test('a header that only the relay may set is refused by name, without repeating its value', async () => {
  const { operate } = await start({
    listen: { internal: { trustProxy: ['127.0.0.1'] } },
    portal: { trustedHeader: 'X-Forwarded-User', admins: ['ann'] },
  })
  const add = (headers: object) =>
    operate('POST', '/relay/endpoints', { name: 'shop', url: 'http://127.0.0.1:9/', enabled: false, headers })
  for (const name of ['Host', 'Content-Type', 'x-service-a', 'webhook-id', 'relay-sequence', 'x-forwarded-user', 'a b']) {
    const answer = await add({ [name]: CANARY })
    expect([name, answer.status, answer.body.detail]).toEqual([name, 400, expect.stringContaining(`headers.${name} `)])
    expect(answer.text).not.toContain(CANARY)
  }
  expect((await add({ 'X-A': 'one', 'x-a': 'two' })).body.detail).toContain('must not name a header twice')
  expect((await add({ 'X-A': 'a\r\nb' })).body.detail).toContain('must be printable')
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`x-${at}`, 'v']))
  expect((await add({ ...many, 'x-20': 'v' })).body.detail).toContain('at most 20')
  const { id } = (await add(many)).body
  expect((await operate('PATCH', `/relay/endpoints/${String(id)}`, { headers: { 'x-20': 'v' } })).body.detail).toContain('at most 20')
})

testWith('openssl')('an endpoint of the config gets its fixed headers, and the client certificate it asks for', async () => {
  const authority = createAuthority(temporaryFolder())
  const seen: [string | undefined, string | undefined][] = []
  const ours = authority.sign('relay.internal')
  const server = createServer(
    { ...authority.sign('localhost'), ca: authority.ca, requestCert: true, rejectUnauthorized: true },
    (request, response) => {
      const { CN } = (request.socket as TLSSocket).getPeerCertificate().subject
      seen.push([request.headers.authorization, Array.isArray(CN) ? CN[0] : CN])
      request.resume().on('end', () => response.end())
    },
  )
  const url = `https://localhost:${await listenInTest(server)}/events`
  const files = temporaryFolder()
  const [certFile, keyFile] = [join(files, 'relay.pem'), join(files, 'relay.key')]
  writeFileSync(certFile, ours.cert)
  writeFileSync(keyFile, ours.key)
  const shop = { name: 'shop', url, sharedKey: KEY, caFile: authority.caFile, headers: { Authorization: CANARY } }
  const relay = await start({ delivery: { allowNetworks: ['localhost'] }, endpoints: [{ ...shop, clientCert: { certFile, keyFile } }] })
  await push(relay.publicUrl, pushBody())
  await vi.waitFor(() => expect(seen).toEqual([[CANARY, 'relay.internal']]))
  expect((await relay.operate('GET', '/relay/endpoints')).body).toMatchObject({ endpoints: [{ headers: { authorization: MASKED } }] })
  const metrics = await (await fetch(`${relay.internalUrl}/metrics`)).text()
  const [, until] = /^relay_endpoint_certificate_expiry_timestamp_seconds\{endpoint="shop"\} (\S+)$/m.exec(metrics) ?? []
  // The certificate is valid for two days.
  expect(Math.ceil((Number(until) - Date.now() / 1000) / 86_400)).toBe(2)
  writeFileSync(keyFile, authority.sign('another').key)
  await expect(relay.reloadWith({ endpoints: [{ ...shop, clientCert: { certFile, keyFile } }] })).rejects.toThrow(
    `endpoints: "shop": clientCert: the key in ${keyFile} does not fit`,
  )
})

test('a reload changes, adds and removes fixed headers from the next push on', async () => {
  const receiver = await receiverOfTest()
  const shop = { name: 'shop', url: receiver.url, sharedKey: KEY }
  const relay = await start({ endpoints: [{ ...shop, headers: { Authorization: 'old', 'X-Gone': 'g' } }] })
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB0000001SE'] }))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1))
  expect(receiver.pushes[0]?.headers).toMatchObject({ authorization: 'old', 'x-gone': 'g' })
  await relay.reloadWith({ endpoints: [{ ...shop, headers: { Authorization: 'new', 'X-Gone': 'g' } }] })
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB0000002SE'] }))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(2))
  expect(receiver.pushes[1]?.headers).toMatchObject({ authorization: 'new', 'x-gone': 'g' })
  await relay.reloadWith({ endpoints: [{ ...shop, headers: { Authorization: 'new', 'X-More': 'm' } }] })
  await push(relay.publicUrl, pushBody({ trackingIds: ['AB0000003SE'] }))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(3))
  expect(receiver.pushes[2]?.headers).toMatchObject({ authorization: 'new', 'x-more': 'm' })
  expect(receiver.pushes[2]?.headers).not.toHaveProperty('x-gone')
})
