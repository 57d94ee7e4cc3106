import { expect, onTestFinished, test, vi } from 'vitest'
import { signBody } from '../../src/core/domain/ingest/signature.ts'
import { pushBody } from '../support/history/builders.ts'
import { expectedSignature, receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ask, logIn, push, type Sections, SHARED_KEY, SHOP, spawnRelay, writeConfig } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const OTHER_KEY = 'another-shared-key-for-tests'
/** Ten times as long as a reload may take. */
const SOON = { timeout: 10_000, interval: 20 }

const BASE = { delivery: { allowNetworks: ['127.0.0.0/8'] }, log: { level: 'info' } }

const startHere = (sections: Sections = {}) => relayOfTest({ ...BASE, ...sections })

/** Starts a relay process, which reads its config file again on SIGHUP. */
async function start(sections: Sections = {}) {
  const folder = temporaryFolder()
  const write = (changed: Sections) => writeConfig(folder, NO_CARRIER, { ...BASE, ...changed })
  const relay = await spawnRelay(write(sections))
  let said = ''
  relay.process.stdout?.on('data', (chunk) => {
    said += String(chunk)
  })
  const reload = (changed: Sections) => {
    write(changed)
    relay.process.kill('SIGHUP')
  }
  onTestFinished(async () => {
    relay.process.kill('SIGTERM')
    await relay.ended
  })
  return { ...relay, reload, said: () => said }
}

async function statusOfKey(publicUrl: string, key: string): Promise<number> {
  const body = pushBody()
  return (await push(publicUrl, body, { 'x-service-hmac-sha256': signBody(body, key) })).status
}

test('I10: each configured key is valid, and a removed key is refused within a second', async () => {
  const { publicUrl, reloadWith } = await startHere({ webhook: { sharedKeys: [SHARED_KEY, OTHER_KEY] } })
  expect([await statusOfKey(publicUrl, SHARED_KEY), await statusOfKey(publicUrl, OTHER_KEY)]).toEqual([200, 200])
  await reloadWith({ webhook: { sharedKeys: [OTHER_KEY] } })
  await vi.waitFor(async () => expect(await statusOfKey(publicUrl, SHARED_KEY)).toBe(401), SOON)
  expect(await statusOfKey(publicUrl, OTHER_KEY)).toBe(200)
})

test('R3: an app that leaves the config is refused within a second, even with its token', async () => {
  const { internalUrl, reloadWith } = await startHere()
  const token = await logIn(internalUrl, SHOP)
  expect((await ask(internalUrl, token, '/v1/status/1001/all')).status).not.toBe(401)
  await reloadWith({ apps: [] })
  await vi.waitFor(async () => expect((await ask(internalUrl, token, '/v1/status/1001/all')).status).toBe(401), SOON)
})

test('a reload changes the endpoints of the config, and not the managed endpoints', async () => {
  const receiver = await receiverOfTest()
  const relay = await startHere({ endpoints: [{ name: 'old', url: 'http://127.0.0.1:9/', sharedKey: OTHER_KEY }] })
  const operate = await operatorOf(relay)
  await operate('POST', '/relay/endpoints', { name: 'managed', url: 'http://127.0.0.1:9/', enabled: false })
  await relay.reloadWith({ endpoints: [{ name: 'new', url: receiver.url, sharedKey: OTHER_KEY }] })
  const namesOf = async () => {
    const { endpoints } = (await operate('GET', '/relay/endpoints')).body
    return Array.isArray(endpoints) ? endpoints.map(({ name, origin, disabledBecause }) => [name, origin, disabledBecause]) : []
  }
  await vi.waitFor(
    async () =>
      expect(await namesOf()).toEqual([
        ['old', 'config', 'unnamed'],
        ['managed', 'managed', 'operator'],
        ['new', 'config', null],
      ]),
    SOON,
  )
  const body = pushBody()
  await push(relay.publicUrl, body)
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1))
  expect(receiver.pushes[0]?.headers['x-service-hmac-sha256']).toBe(expectedSignature(body, OTHER_KEY))
})

test('a reload changes how and where events are delivered, and lists what needs a restart', async () => {
  const receiver = await receiverOfTest()
  receiver.answer(() => 503)
  const relay = await start({ delivery: { allowNetworks: ['10.0.0.0/8'], schedule: ['1h'] } })
  const operate = await operatorOf(relay)
  const add = { name: 'shop', url: receiver.url }
  expect((await operate('POST', '/relay/endpoints', add)).body).toMatchObject({ detail: expect.stringContaining('loopback') })
  const delivery = { allowNetworks: ['127.0.0.0/8'], schedule: ['100ms', '100ms', '100ms'], jitter: 0 }
  relay.reload({ delivery, limits: { batch: 100 }, upstream: { password: 'another password', timeout: '3s' } })
  await vi.waitFor(async () => expect((await operate('POST', '/relay/endpoints', add)).status).toBe(201))
  await push(relay.publicUrl, pushBody())
  await vi.waitFor(() => expect(receiver.pushes.length).toBeGreaterThan(2))
  await vi.waitFor(() => expect(relay.said()).toContain('need a restart'), SOON)
  expect(relay.said()).toContain('"settings":["upstream.timeout","limits"]')
  const reloaded =
    relay
      .said()
      .split('\n')
      .find((line) => line.includes('config reloaded')) ?? '{}'
  expect(JSON.parse(reloaded).changed).toEqual(
    expect.arrayContaining(['delivery.schedule', 'delivery.jitter', 'delivery.allowNetworks', 'upstream.password']),
  )
  expect(relay.said()).not.toContain('another password')
  relay.reload({ delivery: { ...delivery, allowNetworks: ['10.0.0.0/8'] } })
  await vi.waitFor(async () => expect((await operate('POST', '/relay/endpoints/1/test')).body).toMatchObject({ reason: 'forbidden' }), SOON)
})

test('a reload changes how old an event may be to be recorded', async () => {
  const relay = await startHere({ retention: { history: '40d' } })
  const operate = await operatorOf(relay)
  const stateOf = async (id: string) => {
    const body = pushBody({ trackingIds: [id], eventTime: new Date(Date.now() - 30 * 86_400_000).toISOString() })
    expect((await push(relay.publicUrl, body)).status).toBe(200)
    return (await operate('GET', '/relay/inbox?limit=1')).body.pushes
  }
  expect(await stateOf('60000001')).toMatchObject([{ id: '1', state: 'recorded' }])
  await relay.reloadWith({ retention: { history: '20d' } })
  expect(await stateOf('60000002')).toMatchObject([{ id: '2', state: 'expired' }])
  expect((await operate('GET', '/relay/audit?limit=1')).body).toMatchObject({
    actions: [{ detail: { changed: expect.arrayContaining(['retention.history']) } }],
  })
})

test('a reload of a bad config logs the problems, and changes nothing', async () => {
  const { publicUrl, reload, said } = await start()
  reload({ webhook: { sharedKeys: [OTHER_KEY] }, limits: { batch: 'many' } })
  await vi.waitFor(() => expect(said()).toContain('has problems; nothing has changed'))
  expect(said()).toContain('limits.batch')
  expect(said()).not.toContain(OTHER_KEY)
  expect([await statusOfKey(publicUrl, SHARED_KEY), await statusOfKey(publicUrl, OTHER_KEY)]).toEqual([200, 401])
})
