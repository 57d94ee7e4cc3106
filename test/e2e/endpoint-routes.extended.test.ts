import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startForwardProxy } from '../support/network/forward-proxy.ts'
import { listenInTest } from '../support/network/listen.ts'
import { createAuthority } from '../support/network/private-authority.ts'
import { operatorOf } from '../support/relay/manage.ts'
import type { Sections } from '../support/relay/relay.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { testWith } from '../support/runner/test-with.ts'

const KEY = 'the-key-of-the-endpoint'

testWith('openssl')('an endpoint of the config is reached through its proxy and with its private authority', async () => {
  const folder = temporaryFolder()
  const authority = createAuthority(folder)
  const bodies: string[] = []
  const server = createServer(authority.sign('shop.internal'), (request, response) => {
    request.on('data', (chunk) => bodies.push(String(chunk))).on('end', () => response.end())
  })
  const url = `https://shop.internal:${await listenInTest(server)}/events`
  const proxy = await startForwardProxy()
  const relay = await relayOfTest({
    endpoints: [{ name: 'shop', url, sharedKey: KEY, proxy: proxy.url, caFile: authority.caFile }],
  })
  await push(relay.publicUrl, pushBody())
  await vi.waitFor(() => expect(bodies).toEqual([String(pushBody())]))
  const operate = await operatorOf(relay)
  expect((await operate('POST', '/relay/endpoints/1/test')).body).toMatchObject({ result: 'accepted' })
  expect(new Set(proxy.asked)).toEqual(new Set([`CONNECT ${new URL(url).host}`]))
})

test('C2: a caFile that is missing or holds no certificate stops the start and is named', async () => {
  const caFile = join(temporaryFolder(), 'ca.pem')
  const start = (sections: Sections) => relayOfTest(sections)
  const endpoints = [{ name: 'shop', url: 'https://shop.internal/', sharedKey: KEY, caFile }]
  await expect(start({ endpoints })).rejects.toThrow(
    `endpoints: "shop": caFile: ${caFile} cannot be read (there is no such file or folder)`,
  )
  writeFileSync(caFile, 'no certificate')
  await expect(start({ endpoints })).rejects.toThrow('contains no certificate')
  await expect(start({ upstream: { caFile } })).rejects.toThrow(`upstream.caFile: ${caFile} contains no certificate`)
})
