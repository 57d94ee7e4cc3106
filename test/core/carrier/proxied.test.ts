import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createPlainServer, type RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect } from 'vitest'
import type { Route } from '../../../src/core/domain/delivery/delivery-request.ts'
import { startForwardProxy } from '../../support/network/forward-proxy.ts'
import { listenInTest } from '../../support/network/listen.ts'
import { createAuthority } from '../../support/network/private-authority.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { openSender } from '../outbound/sender-world.ts'
import { closeOpened, connect, goodBody, json, refusingUrl } from './carrier-double.ts'

const folder = mkdtempSync(join(tmpdir(), 'parcel-relay-'))
const authority = createAuthority(folder)
afterAll(() => rmSync(folder, { recursive: true }))
afterEach(closeOpened)

/** A name that only the proxy can resolve. */
const HIDDEN = 'hooks.only-the-proxy-knows.internal'
const hidden = () => authority.sign(HIDDEN)

const test = testWith('openssl')

async function startEndpoint(tls: { readonly cert: string; readonly key: string } | null) {
  const seen: (readonly [url: string, headers: object])[] = []
  const listener: RequestListener = (request, response) => {
    seen.push([request.url ?? '', request.headers])
    request.resume().on('end', () => response.end('taken'))
  }
  const port = await listenInTest(tls === null ? createPlainServer(listener) : createServer(tls, listener))
  return { seen, url: `${tls === null ? 'http' : 'https'}://${HIDDEN}:${port}/hook`, port }
}

async function post(url: string, route: Route, timeoutMs = 5000) {
  await using world = openSender({}, { timeoutMs })
  return await world.sender.send({ url, headers: { 'x-a': '1' }, body: Buffer.from('{"status":"Created"}'), route })
}

test('an endpoint behind a proxy gets its events, and only the proxy looks up its host name', async () => {
  const proxy = await startForwardProxy()
  const [plain, secure] = [await startEndpoint(null), await startEndpoint(hidden())]
  expect(await post(plain.url, { proxy: proxy.url })).toMatchObject({ kind: 'accepted', status: 200 })
  expect(await post(secure.url, { proxy: proxy.url, ca: authority.ca })).toMatchObject({ kind: 'accepted', status: 200 })
  expect(proxy.asked).toEqual([`POST ${plain.url}`, `CONNECT ${HIDDEN}:${secure.port}`])
  expect([plain.seen, secure.seen].map(([first]) => first)).toEqual([
    ['/hook', expect.objectContaining({ 'x-a': '1', host: `${HIDDEN}:${plain.port}` })],
    ['/hook', expect.objectContaining({ 'x-a': '1', host: `${HIDDEN}:${secure.port}` })],
  ])
})

test('through a proxy, a certificate of an unknown authority or for another name is refused', async () => {
  const proxy = await startForwardProxy()
  const [known, other] = [await startEndpoint(hidden()), await startEndpoint(authority.sign('other.internal'))]
  expect(await post(known.url, { proxy: proxy.url })).toMatchObject({ kind: 'failed', reason: 'certificate_untrusted' })
  expect(await post(other.url, { proxy: proxy.url, ca: authority.ca })).toMatchObject({ kind: 'failed', reason: 'certificate_wrong_name' })
  expect([known.seen, other.seen]).toEqual([[], []])
})

test('a configured private certificate authority is trusted, also without a proxy', async () => {
  const endpoint = await startEndpoint(authority.sign('localhost'))
  const url = endpoint.url.replace(HIDDEN, 'localhost')
  expect(await post(url, {})).toMatchObject({ kind: 'failed', reason: 'certificate_untrusted' })
  expect(await post(url, { ca: authority.ca })).toMatchObject({ kind: 'accepted' })
})

test('the password in the address of a proxy is sent only to that proxy', async () => {
  const proxy = await startForwardProxy({ password: 'open sesame' })
  const address = proxy.url.replace('//', '//relay:open%20sesame@')
  for (const endpoint of [await startEndpoint(null), await startEndpoint(hidden())]) {
    expect(await post(endpoint.url, { proxy: address, ca: authority.ca })).toMatchObject({ kind: 'accepted' })
    expect(JSON.stringify(endpoint.seen)).not.toMatch(/authorization/i)
    expect(await post(endpoint.url, { proxy: proxy.url, ca: authority.ca })).toMatchObject({ kind: 'failed', reason: 'proxy' })
    expect(endpoint.seen).toHaveLength(1)
  }
})

test('a failing or unreachable proxy is named as the reason, and a silent one times out', async () => {
  const endpoint = await startEndpoint(hidden())
  const refusing = await startForwardProxy({ refuse: true })
  expect(await post(endpoint.url, { proxy: refusing.url })).toMatchObject({ kind: 'failed', reason: 'proxy' })
  expect(await post(endpoint.url, { proxy: await refusingUrl() })).toMatchObject({ kind: 'failed', reason: 'proxy' })
  expect(await post(endpoint.url, { proxy: 'http://no-such-proxy.invalid:3128' })).toMatchObject({ kind: 'failed', reason: 'proxy' })
  const silent = await startForwardProxy({ silent: true })
  expect(await post(endpoint.url, { proxy: silent.url }, 300)).toMatchObject({ kind: 'failed', reason: 'timeout' })
  expect(endpoint.seen).toEqual([])
})

test('O11: a forbidden address is not reached through a proxy', async () => {
  const proxy = await startForwardProxy()
  await using world = openSender({ allowNetworks: ['10.0.0.0/8'] })
  const forbidden = ['127.0.0.1', '169.254.169.254', '[::1]', '8.8.8.8', 'localhost', 'any.localhost.', '2130706433']
  for (const host of forbidden) {
    const sent = await world.sender.send({ url: `http://${host}/`, headers: {}, body: Buffer.of(), route: { proxy: proxy.url } })
    expect.soft(sent, host).toMatchObject({ kind: 'failed', reason: 'forbidden' })
  }
  expect(proxy.asked).toEqual([])
})

test('the carrier is reached through a proxy, also with a certificate of a private authority', async () => {
  const proxy = await startForwardProxy()
  const carrier = createServer(hidden(), (request, response) => json(response, 200, request.method === 'POST' ? '{"token":"t"}' : goodBody))
  const url = `https://${HIDDEN}:${await listenInTest(carrier)}`
  expect((await connect(url, { proxy: proxy.url, ca: authority.ca }).fetchAll()).kind).toBe('found')
  expect(new Set(proxy.asked)).toEqual(new Set([`CONNECT ${url.replace('https://', '')}`]))
  expect(await connect(url, { proxy: proxy.url }).fetchAll()).toMatchObject({ kind: 'unavailable', reason: 'network' })
})
