import { renameSync } from 'node:fs'
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { startSandbox } from '../../src/trial/sandbox/sandbox.ts'
import { goodBody, json, openCarrier } from '../core/carrier/carrier-double.ts'
import { listen } from '../support/network/listen.ts'
import { createVisitor } from '../support/portal/portal-visitor.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { CARRIER_LOGIN, type Sections, SHARED_KEY, startTestRelay } from '../support/relay/relay.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

async function startRelay(carrierUrl: string, sections: Sections = {}, folder = temporaryFolder()) {
  const relay = await startTestRelay(folder, carrierUrl, sections)
  onTestFinished(() => relay.stop())
  return relay
}

async function startCarrier() {
  const sandbox = await startSandbox({ ...CARRIER_LOGIN, sharedKey: SHARED_KEY, parcels: 1, seed: 1, speed: 0 })
  onTestFinished(() => sandbox.stop())
  return sandbox
}

async function linesOf(relay: Parameters<typeof operatorOf>[0]) {
  const { status, body } = await (await operatorOf(relay))('GET', '/relay/check')
  expect(status).toBe(200)
  const found: Readonly<Record<string, unknown>> = { ...body }
  const lines = Array.isArray(found.lines) ? found.lines : []
  return {
    ok: found.ok,
    of: (name: string, subject: string | null = null) => lines.find((line) => line.name === name && line.subject === subject),
  }
}

async function startReceiver() {
  const seen = { connections: 0, requests: 0 }
  const server = createServer((_, response) => {
    seen.requests++
    response.end()
  })
  server.on('connection', () => seen.connections++)
  onTestFinished(() => void server.close())
  return { seen, port: await listen(server) }
}

test('the check of a working relay is ok, and sends nothing to the endpoints', async () => {
  const [sandbox, receiver] = [await startCarrier(), await startReceiver()]
  const endpoint = { name: 'shop', url: `http://127.0.0.1:${receiver.port}/hook`, sharedKey: 'the-key-of-the-shop-endpoint' }
  const relay = await startRelay(sandbox.url, {
    endpoints: [endpoint],
    delivery: { allowNetworks: ['127.0.0.0/8'] },
    limits: { freeSpaceMin: '1MB', connections: 100 },
  })
  const { ok, of } = await linesOf(relay)
  expect(ok).toBe(true)
  for (const name of [
    'relay',
    'config',
    'store',
    'disk',
    'files',
    'credentials',
    'question',
    'clock',
    'push',
    'open_files',
    'retention',
    'erasure',
  ])
    expect([name, of(name)]).toEqual([name, expect.objectContaining({ state: 'ok' })])
  expect(of('keys', 'secrets.atRestKeys')).toMatchObject({ state: 'ok' })
  expect(of('endpoint', 'shop')).toMatchObject({ state: 'ok', message: expect.stringContaining('takes connections') })
  expect(receiver.seen.requests).toBe(0)
  expect(receiver.seen.connections).toBeGreaterThan(0)
  const ask = await operatorOf(relay)
  await expect
    .poll(async () => await (await fetch(`${relay.internalUrl}/metrics`)).text())
    .toContain('relay_pushes_received_total{outcome="check",key="0"} 1')
  expect((await ask('GET', '/relay/inbox')).body).toMatchObject({ pushes: [] })
})

test('each part that does not work fails with its reason, in the API and in the portal', async () => {
  const sandbox = await startCarrier()
  const receiver = await startReceiver()
  const sharedKey = 'the-key-of-the-shop-endpoint'
  const relay = await startRelay(sandbox.url, {
    upstream: { baseUrl: sandbox.url, ...CARRIER_LOGIN, password: 'a wrong password' },
    endpoints: [
      { name: 'forbidden', url: `http://127.0.0.2:${receiver.port}/hook`, sharedKey },
      { name: 'refused', url: 'http://127.0.0.1:9/hook', sharedKey },
      { name: 'off', url: 'http://127.0.0.1:9/hook', sharedKey, enabled: false },
    ],
    delivery: { allowNetworks: ['127.0.0.1/32'] },
  })
  const { ok, of } = await linesOf(relay)
  expect(ok).toBe(false)
  expect(of('credentials')).toMatchObject({ state: 'failed', message: expect.stringContaining('correct upstream.username') })
  expect(of('endpoint', 'forbidden')).toMatchObject({ state: 'failed', message: expect.stringContaining('delivery.allowNetworks') })
  expect(of('endpoint', 'refused')).toMatchObject({ state: 'failed', message: expect.stringContaining('Nobody listens there') })
  expect(of('endpoint', 'off')).toMatchObject({ state: 'skipped' })
  const visitor = createVisitor(relay.internalUrl)
  await visitor.logIn()
  expect((await visitor.get('/check')).text).toContain('Check this deployment')
  const page = (await visitor.post('/check', {})).text
  for (const shown of ['things do not work', 'does not work', 'delivery.allowNetworks', 'correct upstream.username'])
    expect(page).toContain(shown)
})

test('a carrier that gives tokens and answers questions with 403 is red, by two calls', async () => {
  let isWell = true
  const carrier = await openCarrier({ status: (_request, response) => json(response, isWell ? 200 : 403, isWell ? goodBody : '{}') })
  onTestFinished(carrier.close)
  const relay = await startRelay(carrier.url)
  await (await operatorOf(relay))('POST', '/relay/parcels/AB123456789SE/refresh')
  isWell = false
  const before = { ...carrier.asked }
  const { ok, of } = await linesOf(relay)
  expect(ok).toBe(false)
  expect(of('credentials')).toMatchObject({ state: 'ok' })
  expect(of('question')).toMatchObject({ state: 'failed', message: expect.stringMatching(/answered before: it rejected .*403/) })
  expect([carrier.asked.token - before.token, carrier.asked.status - before.status]).toEqual([1, 1])
})

test('a disk that is too full for pushes makes the check of the push fail too', async () => {
  const relay = await startRelay('http://127.0.0.1:9', { limits: { freeSpaceMin: '1024GB' } })
  const { ok, of } = await linesOf(relay)
  expect(ok).toBe(false)
  expect(of('disk')).toMatchObject({ state: 'failed' })
  expect(of('push')).toMatchObject({ state: 'failed', message: expect.stringContaining('Pushes are refused now') })
})

test('the check of a store fails if its file was taken away', async () => {
  const relay = await startRelay('http://127.0.0.1:9')
  renameSync(relay.databasePath, `${relay.databasePath}.away`)
  const { of } = await linesOf(relay)
  renameSync(`${relay.databasePath}.away`, relay.databasePath)
  expect(of('store')).toMatchObject({ state: 'failed', message: expect.stringContaining('was deleted while the relay runs') })
})

test('on PostgreSQL the checks of disk, files and backup are skipped, and the others pass', async () => {
  const [sandbox, { url }] = [await startCarrier(), await createDatabase('nothing')]
  const atRest = { secrets: { atRestKeys: [Buffer.alloc(32, 1).toString('base64')] } }
  const { ok, of } = await linesOf(await startRelay(sandbox.url, { store: url, ...atRest, limits: { connections: 100 } }))
  expect(ok).toBe(true)
  for (const name of ['disk', 'files', 'erasure', 'backup']) expect(of(name)).toMatchObject({ state: 'skipped' })
  for (const name of ['store', 'credentials', 'question', 'clock', 'push', 'retention']) expect(of(name)).toMatchObject({ state: 'ok' })
})
