import { statfsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { listenInTest } from '../support/network/listen.ts'
import { createAuthority } from '../support/network/private-authority.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push, type Sections, spawnRelay, writeConfig } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const DELIVERY = { delivery: { schedule: ['100ms'], allowNetworks: ['127.0.0.0/8'] } }
const SOON = { timeout: 60_000, interval: 100 }

interface Told {
  readonly event: string
  readonly [member: string]: unknown
}

const eventsOf = async (relay: { readonly internalUrl: string }, query = ''): Promise<readonly Told[]> => {
  const { body } = await (await operatorOf(relay))('GET', `/relay/operator-events${query}`)
  return [body.events]
    .flat()
    .map((one) => ({ event: '', ...Object(one) }))
    .reverse()
}
const namesOf = async (relay: { readonly internalUrl: string }) => (await eventsOf(relay)).map(({ event }) => event)

async function start(sections: Sections, carrierUrl = NO_CARRIER, folder = temporaryFolder()) {
  const relay = await relayOfTest({ ...DELIVERY, ...sections }, { folder, carrierUrl })
  return { ...relay, operate: await operatorOf(relay) }
}

/** Starts a carrier that knows no parcel, and refuses every login while `refuses` is true. */
async function startCarrier() {
  const state = { refuses: true }
  const carrier = createServer((request, response) => {
    if (state.refuses) response.writeHead(401).end()
    else if (request.url === '/auth/token') response.setHeader('content-type', 'application/json').end('{"token":"one"}')
    else response.writeHead(404).end()
  })
  return { state, url: `http://127.0.0.1:${await listenInTest(carrier)}` }
}

test('a failure that lasts longer than failingAfter is reported once, and its recovery once', async () => {
  const [shop, operator] = [await receiverOfTest(), await receiverOfTest()]
  shop.answer(() => 503)
  const relay = await start({ operator: { url: operator.url, sharedKey: 'the-key-of-the-operators-hook', failingAfter: '1s' } })
  const { body } = await relay.operate('POST', '/relay/endpoints', { name: 'shop', url: shop.url })
  const endpoint = { id: body.id, name: 'shop' }
  await Promise.all(Array.from({ length: 6 }, (_, nth) => push(relay.publicUrl, pushBody({ trackingIds: [String(5000 + nth)] }))))
  await vi.waitFor(async () => expect(await eventsOf(relay)).toMatchObject([{ event: 'endpoint_failing', endpoint }]), SOON)
  shop.answer(() => 200)
  await relay.operate('POST', `/relay/endpoints/${String(body.id)}/retry`)
  await vi.waitFor(async () => expect(await namesOf(relay)).toHaveLength(2), SOON)
  const [failing, recovered] = await eventsOf(relay)
  expect(recovered).toEqual({
    id: expect.any(String),
    at: expect.any(String),
    event: 'endpoint_recovered',
    endpoint,
    since: failing?.since,
    downForMs: Date.parse(String(recovered?.at)) - Date.parse(String(failing?.since)),
    waited: 6,
  })
  await vi.waitFor(() => expect(operator.pushes).toHaveLength(2), SOON)
  expect(operator.pushes.map((one) => JSON.parse(String(one.body)).event)).toEqual(['endpoint_failing', 'endpoint_recovered'])
})

test('the first push quarantined for a reason is reported even without an operator endpoint', async () => {
  const relay = await start({})
  for (const body of ['not JSON', 'nor this', '{}']) await push(relay.publicUrl, body)
  await vi.waitFor(async () => expect(await namesOf(relay)).toHaveLength(2), SOON)
  const told = (await eventsOf(relay)).map(({ event, reason, count }) => ({ event, reason, count }))
  expect(told).toEqual(
    expect.arrayContaining([
      { event: 'pushes_quarantined', reason: 'json_syntax', count: 2 },
      { event: 'pushes_quarantined', reason: 'schema', count: 1 },
    ]),
  )
})

test('operators get one event about low disk space, before pushes are refused', async () => {
  const folder = temporaryFolder()
  const { bavail, bsize } = statfsSync(folder)
  const sections = { limits: { freeSpaceMin: `${Math.floor((bavail * bsize) / 1024 ** 2 / 1.5)}MB` } }
  const relay = await start(sections, NO_CARRIER, folder)
  await vi.waitFor(async () => expect(await namesOf(relay)).toEqual(['disk_low']), SOON)
  expect((await push(relay.publicUrl, pushBody())).status).toBe(200)
  await relay.stop()
  const again = await start(sections, NO_CARRIER, folder)
  // A second event about the disk would come before the event about this push.
  await push(again.publicUrl, 'not JSON')
  await vi.waitFor(async () => expect(await namesOf(again)).toEqual(['disk_low', 'pushes_quarantined']), SOON)
})

/** Starts a relay process, which reads its config again on SIGHUP. */
async function startProcess(sections: Sections) {
  const folder = temporaryFolder()
  const path = writeConfig(folder, NO_CARRIER, sections)
  const relay = await spawnRelay(path)
  onTestFinished(async () => {
    relay.process.kill('SIGTERM')
    await relay.ended
  })
  const reload = (write: () => void) => {
    write()
    relay.process.kill('SIGHUP')
  }
  return { ...relay, path, reload, writeSections: (changed: Sections) => void writeConfig(folder, NO_CARRIER, changed) }
}

test('a reload is audited, and its event says what it changed and what needs a restart', async () => {
  const shop = { name: 'shop', url: NO_CARRIER, sharedKey: 'the-key-of-the-shop', enabled: false }
  const relay = await startProcess({ endpoints: [shop, { ...shop, name: 'old' }] })
  relay.reload(() =>
    relay.writeSections({
      endpoints: [{ ...shop, url: 'http://127.0.0.1:10' }],
      webhook: { sharedKeys: ['another-shared-key-for-tests'] },
      limits: { batch: 100 },
    }),
  )
  await vi.waitFor(async () => expect(await eventsOf(relay, '?event=reloaded')).toHaveLength(1), SOON)
  expect(await eventsOf(relay, '?event=reloaded')).toMatchObject([
    { changed: ['webhook.sharedKeys', 'endpoints.shop', 'endpoints.old'], needsRestart: ['limits'], problems: [] },
  ])
  expect(await eventsOf(relay, '?event=endpoint_disabled')).toMatchObject([{ endpoint: { name: 'old' }, because: 'unnamed' }])
  const { text, body } = await (await operatorOf(relay))('GET', '/relay/audit')
  expect(body.actions).toMatchObject([{ by: { kind: 'signal', name: 'SIGHUP' }, address: null, action: 'config.reloaded' }])
  expect(text).not.toContain('key-of-the-shop')
})

test('operators get an event with the problems of a config that cannot be reloaded', async () => {
  const relay = await startProcess({})
  relay.reload(() => writeFileSync(relay.path, 'listen: nowhere\n'))
  await vi.waitFor(async () => expect(await namesOf(relay)).toEqual(['reload_failed']), SOON)
  const [told] = await eventsOf(relay)
  expect(JSON.stringify(told?.problems)).toContain('relay.yaml:1')
})

test('operators get one event per listener whose certificate expires within 14 days', async () => {
  const folder = temporaryFolder()
  const { cert, key } = createAuthority(folder).sign('localhost')
  const [certFile, keyFile] = [join(folder, 'shown.pem'), join(folder, 'shown.key')]
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  const relay = await start({ listen: { public: { host: '127.0.0.1', port: 0, tls: { certFile, keyFile } } } }, NO_CARRIER, folder)
  await vi.waitFor(async () => expect(await eventsOf(relay)).toMatchObject([{ event: 'certificate_expiring', listener: 'public' }]), SOON)
})

test('two replicas report refused credentials once, and not again when one replica takes over', async () => {
  const carrier = await startCarrier()
  const sections = { ...(await onPostgres()), upstream: { ratePerSecond: 50 } }
  const one = await start(sections, carrier.url)
  const two = await start(sections, carrier.url)
  for (const relay of [one, two]) for (const id of ['AB1001', 'AB1002']) await relay.operate('GET', `/v1/status/${id}/all`)
  await vi.waitFor(async () => expect(await namesOf(two)).toEqual(['credentials_refused']), SOON)
  const pollerOf = async () => JSON.stringify((await two.operate('GET', '/relay/replicas')).body)
  await one.stop()
  await vi.waitFor(async () => expect(await pollerOf()).toMatch(/"roles":\[[^\]]*"poller"/), SOON)
  await push(two.publicUrl, 'not JSON')
  await vi.waitFor(async () => expect(await namesOf(two)).toContain('pushes_quarantined'), SOON)
  expect(await namesOf(two)).toEqual(['credentials_refused', 'pushes_quarantined'])
})

const KILLS = byForm(4, 40)

test(`${KILLS} kills around a 410 neither lose nor repeat the event of a disabled endpoint`, async () => {
  const shop = await receiverOfTest()
  shop.answer(() => 410)
  const config = writeConfig(temporaryFolder(), NO_CARRIER, { ...DELIVERY, endpoints: [] })
  let expected = 0
  for (let kill = 0; kill < KILLS; kill++) {
    const relay = await spawnRelay(config)
    const operate = await operatorOf(relay)
    const { body } = await operate('POST', '/relay/endpoints', { name: `shop-${kill}`, url: shop.url })
    await push(relay.publicUrl, pushBody({ trackingIds: [String(5000 + kill)] })).catch(() => undefined)
    await pause((kill % 8) * 4)
    relay.process.kill('SIGKILL')
    await relay.ended
    const again = await spawnRelay(config)
    const look = await operatorOf(again)
    const path = `/relay/endpoints/${String(body.id)}`
    const told = async () => (await eventsOf(again, '?event=endpoint_disabled')).length
    // If the kill came before the 410 was saved, the delivery is tried again.
    await vi.waitFor(async () => expect((await look('GET', path)).body.disabledBecause).toBe('gone'), SOON)
    expected += 1
    expect(await told()).toBe(expected)
    await look('DELETE', path)
    again.process.kill('SIGKILL')
    await again.ended
  }
})
