import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import type { Sections } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const SECRET_PATH = '/services/canary-of-the-channel'

/** Starts a relay whose operator URL is on this machine. `delivery.allowNetworks` does not allow it, but `operator.url` does. */
async function start(operator: object = {}, sections: Sections = {}) {
  const receiver = await receiverOfTest()
  const folder = temporaryFolder()
  const url = `${new URL(receiver.url).origin}${SECRET_PATH}`
  const relay = await relayOfTest(
    {
      operator: { url, format: 'slack', ...operator },
      portal: { publicUrl: 'https://relay.internal' },
      log: { level: 'debug' },
      ...sections,
    },
    { folder },
  )
  return { ...relay, folder, receiver, operate: await operatorOf(relay) }
}

test('operator events arrive as unsigned messages, even if no private network is allowed', async () => {
  const { receiver, operate } = await start()
  expect(await operate('POST', '/relay/operator/test')).toMatchObject({ status: 200, body: { result: 'accepted', address: '127.0.0.1' } })
  const [message] = receiver.pushes
  expect(message?.headers).not.toHaveProperty('x-service-hmac-sha256')
  expect(JSON.parse(String(message?.body))).toEqual({
    text: expect.stringContaining('<https://relay.internal/settings|Open the portal>'),
  })
  expect((await operate('GET', '/relay/audit?limit=1')).body).toMatchObject({
    actions: [{ action: 'operator.tested', detail: { result: 'accepted' } }],
  })
})

test('an event of a reload is sent as a message, and its delivery shows what was sent', async () => {
  const { receiver, operate, reloadWith } = await start({ format: 'ntfy' })
  await reloadWith({ retention: { audit: '300d' } })
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1))
  expect(receiver.pushes[0]?.headers).toMatchObject({
    title: 'Parcel status relay: config reloaded',
    click: 'https://relay.internal/settings',
  })
  expect(String(receiver.pushes[0]?.body)).toContain('retention.audit')
  await vi.waitFor(async () => {
    const { deliveries } = (await operate('GET', '/relay/deliveries?state=delivered')).body
    expect(deliveries).toHaveLength(1)
  })
  expect((await operate('GET', '/relay/deliveries/1')).body.request).toEqual({
    url: `${new URL(receiver.url).origin}/[redacted]`,
    headers: expect.objectContaining({ title: 'Parcel status relay: config reloaded' }),
    body: expect.stringContaining('The config was reloaded'),
  })
})

test('no answer, log line or file of the store contains the address of the operator', async () => {
  const file = join(temporaryFolder(), 'operator-url')
  writeFileSync(file, `http://127.0.0.1:9${SECRET_PATH}\n`)
  const { operate, lines, folder, stop, reloadWith } = await start({ url: { file } })
  await reloadWith({ retention: { audit: '300d' } })
  expect((await operate('POST', '/relay/operator/test')).body).toMatchObject({ result: 'failed', reason: 'connection_refused' })
  await vi.waitFor(async () => expect((await operate('GET', '/relay/deliveries?state=retrying')).body.deliveries).toHaveLength(1))
  const texts: string[] = []
  for (const path of ['/relay/check', '/relay/deliveries/1', '/relay/deliveries', '/relay/audit', '/relay/operator-events'])
    texts.push((await operate('GET', path)).text)
  await stop()
  const stored = readdirSync(folder).filter((name) => name.startsWith('relay.db'))
  texts.push(JSON.stringify(lines), ...stored.map((name) => readFileSync(join(folder, name)).toString('latin1')))
  expect(stored.length).toBeGreaterThan(0)
  for (const text of texts) expect(text).not.toContain('canary-of-the-channel')
})

test('a link-local operator URL is refused, and a local one does not allow endpoints there', async () => {
  const { operate } = await start({ url: 'http://169.254.169.254/latest' })
  expect((await operate('POST', '/relay/operator/test')).body).toMatchObject({ result: 'failed', reason: 'forbidden' })
  const other = await start()
  const endpoint = await other.operate('POST', '/relay/endpoints', { name: 'shop', url: other.receiver.url })
  expect(endpoint).toMatchObject({ status: 400, body: { detail: expect.stringContaining('loopback') } })
})

test('a test message without an operator is a 404 that says what to configure', async () => {
  const { operate } = await start({}, { operator: undefined })
  expect(await operate('POST', '/relay/operator/test')).toMatchObject({
    status: 404,
    body: { detail: expect.stringContaining('operator.url') },
  })
})
