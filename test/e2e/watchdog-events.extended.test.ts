import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { closeOpened, openCarrier } from '../core/carrier/carrier-double.ts'
import { pushBody } from '../support/history/builders.ts'
import { expectedSignature, receiverOfTest, type WebhookReceiver } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, SHARED_KEY, writeConfig } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

afterAll(closeOpened)

const HOUR_MS = 3_600_000
const SOON = 30_000
const KEY = 'the-key-of-the-endpoint'
const EVERY = ['entry', 'parcel.stalled', 'parcel.recovered']
const SECTIONS = {
  watchdogs: [{ name: 'no-scan', when: { status: ['Ingested'] }, notWithin: '1h', past: true }],
  delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['100ms'] },
}
const scan = (status: string, atMs: number) =>
  pushBody({ status, detailedStatus: status, eventTime: new Date(atMs).toISOString(), trackingIds: ['AB123456789SE'] })
const listed = z.object({ deliveries: z.array(z.looseObject({ id: z.string(), status: z.string().nullable() })) })
const fed = z.object({ events: z.array(z.object({ kind: z.string() })) })
const kept = z.object({ endpoints: z.array(z.object({ name: z.string(), events: z.array(z.string()) })) })
const said = z.object({ event: z.string().optional(), status: z.string().optional() })

/** What a receiver was sent, by what its bodies say. Events of watchdogs name themselves in a header too, which entries do not have. */
const sentTo = ({ pushes }: WebhookReceiver) =>
  pushes.map(({ body, headers }) => {
    const { event, status } = said.parse(JSON.parse(body.toString()))
    expect(headers['relay-event']).toBe(event)
    return event ?? status ?? ''
  })

test('9.7: events of watchdogs come signed behind the entries; a default endpoint and a chained relay see none', async () => {
  const carrier = await openCarrier()
  const folder = temporaryFolder()
  for (const name of ['near', 'far']) mkdirSync(join(folder, name))
  const [shop, plain] = [await receiverOfTest(), await receiverOfTest()]
  const far = await relayOfTest({}, { folder: join(folder, 'far') })
  const endpoints = [
    { name: 'shop', url: shop.url, sharedKey: KEY, events: EVERY },
    { name: 'plain', url: plain.url, sharedKey: KEY },
    { name: 'far', url: `${far.publicUrl}/webhooks/status`, sharedKey: SHARED_KEY },
  ]
  const near = await relayOfTest({ ...SECTIONS, endpoints }, { folder: join(folder, 'near'), carrierUrl: carrier.url })
  const [operate, operateFar] = [await operatorOf(near), await operatorOf(far)]
  await operate('PUT', '/relay/parcels/AB123456789SE', { reference: 'ORDER å', labels: { shop: 'north' } })
  const nowMs = Date.now()
  await push(near.publicUrl, scan('Ingested', nowMs - 2 * HOUR_MS))
  await vi.waitFor(() => expect(sentTo(shop)).toContain('parcel.stalled'), SOON)
  await push(near.publicUrl, scan('TerminalArrived', nowMs))
  await vi.waitFor(() => expect(sentTo(shop)).toContain('parcel.recovered'), SOON)
  const all = sentTo(shop)
  expect(all.indexOf('Ingested')).toBeLessThan(all.indexOf('parcel.stalled'))
  expect(all.slice(all.indexOf('parcel.stalled'))).toEqual(['parcel.stalled', 'TerminalArrived', 'parcel.recovered'])
  for (const { body, headers } of shop.pushes) {
    expect(headers['x-service-hmac-sha256']).toBe(expectedSignature(body, KEY))
    expect(headers).toMatchObject({ 'relay-reference': encodeURIComponent('ORDER å'), 'relay-label-shop': 'north' })
  }
  const sequences = shop.pushes.map(({ headers }) => Number(headers['relay-sequence']))
  for (const [nth, { headers }] of shop.pushes.entries()) expect(Number(headers['relay-previous-sequence'])).toBe(sequences[nth - 1] ?? 0)

  await vi.waitFor(() => expect(sentTo(plain)).toEqual(all.filter((one) => !one.includes('.'))), SOON)
  const { entries } = (await operateFar('GET', '/relay/parcels/AB123456789SE')).body
  expect(entries).toBe(sentTo(plain).length)
  expect((await operateFar('GET', '/relay/inbox?state=quarantined')).body).toMatchObject({ pushes: [] })

  // Operators see them among the deliveries, and can send them again.
  const { deliveries } = listed.parse((await operate('GET', '/relay/deliveries?parcel=AB123456789SE')).body)
  const stalled = deliveries.filter(({ status }) => status === 'parcel.stalled')
  expect(stalled).toMatchObject([{ endpoint: { name: 'shop' }, detailedStatus: 'no-scan', state: 'delivered' }])
  const path = `/relay/deliveries/${stalled[0]?.id}`
  expect((await operate('GET', path)).body.request).toMatchObject({
    headers: { 'relay-event': 'parcel.stalled', 'relay-label-shop': 'north' },
    body: expect.stringMatching(/^\{"event":"parcel\.stalled",/),
  })
  expect((await operate('POST', `${path}/replay`)).status).toBe(202)
  await vi.waitFor(() => expect(sentTo(shop)).toHaveLength(all.length + 1), SOON)
  const again = shop.pushes.at(-1)
  expect(again?.body).toEqual(shop.pushes[all.indexOf('parcel.stalled')]?.body)
  expect(again?.headers['webhook-id']).toBe(shop.pushes[all.indexOf('parcel.stalled')]?.headers['webhook-id'])
})

test('9.7: killed after the verdict and before the answer, the relay sends the event again, and tells it once', async () => {
  const carrier = await openCarrier()
  const shop = await receiverOfTest()
  const endpoints = [{ name: 'shop', url: shop.url, sharedKey: KEY, events: ['parcel.stalled', 'parcel.recovered'] }]
  const config = writeConfig(temporaryFolder(), carrier.url, { ...SECTIONS, endpoints })
  {
    await using relay = await runRelay(config)
    shop.answer(() => {
      relay.process.kill('SIGKILL')
      return 200
    })
    await push(relay.publicUrl, scan('Ingested', Date.now() - 2 * HOUR_MS))
    expect(await relay.ended).toMatchObject({ signal: 'SIGKILL' })
  }
  const [first] = shop.pushes
  shop.answer(() => 200)
  await using relay = await runRelay(config)
  await vi.waitFor(() => expect(shop.pushes.length).toBeGreaterThan(1), SOON)
  await push(relay.publicUrl, scan('TerminalArrived', Date.now()))
  await vi.waitFor(() => expect(sentTo(shop)).toContain('parcel.recovered'), SOON)
  const told = shop.pushes.filter(({ headers }) => headers['relay-event'] === 'parcel.stalled')
  for (const one of told) expect([one.headers['webhook-id'], one.body]).toEqual([first?.headers['webhook-id'], first?.body])
  expect(sentTo(shop).at(-1)).toBe('parcel.recovered')
  const operate = await operatorOf(relay)
  const { events } = fed.parse((await operate('GET', '/relay/events?after=0')).body)
  const kinds = events.map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'stalled' || kind === 'recovered')).toEqual(['stalled', 'recovered'])
})

test('an endpoint takes its events by the API, the config and a reload; a list without one is refused', async () => {
  const relay = await relayOfTest({ ...SECTIONS, endpoints: [{ name: 'shop', url: 'http://127.0.0.1:9/', sharedKey: KEY }] })
  const operate = await operatorOf(relay)
  const eventsOf = async (name: string) => {
    const { endpoints } = kept.parse((await operate('GET', '/relay/endpoints')).body)
    return endpoints.find((endpoint) => endpoint.name === name)?.events
  }
  expect(await eventsOf('shop')).toEqual(['entry'])
  await relay.reloadWith({
    ...SECTIONS,
    endpoints: [{ name: 'shop', url: 'http://127.0.0.1:9/', sharedKey: KEY, events: ['parcel.recovered', 'parcel.stalled'] }],
  })
  expect(await eventsOf('shop')).toEqual(['parcel.stalled', 'parcel.recovered'])
  const body = { name: 'lab', url: 'http://127.0.0.1:9/' }
  const wrong = async (events: unknown) => (await operate('POST', '/relay/endpoints', { ...body, events })).body.detail
  expect(await wrong([])).toBe('events must name one or more of entry, parcel.stalled, parcel.recovered.')
  expect(await wrong(['delivered'])).toBe('events.0 must be one of entry, parcel.stalled, parcel.recovered.')
  expect(await wrong('entry')).toBe('events must be a list of one or more of entry, parcel.stalled, parcel.recovered.')
  expect((await operate('POST', '/relay/endpoints', { ...body, events: ['entry', 'entry'] })).body.events).toEqual(['entry'])
})
