import { createHmac } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { pushBody } from '../../support/history/builders.ts'
import { receiverOfTest } from '../../support/network/webhook-receiver.ts'
import { operatorOf } from '../../support/relay/manage.ts'
import { ADMIN, logIn, push } from '../../support/relay/relay.ts'
import { relayOfTest } from '../../support/relay/relay-of-test.ts'

const KEY = 'the-key-of-the-endpoint'
const NAUGHTY = [
  '',
  '%',
  'å ö\u2028',
  '<script>',
  '"; drop table',
  '\\',
  '\u{1f600}',
  'a,b;c=d',
  '../',
  'null',
  "'",
  '`$(x)`',
  '＜',
  '\u202e',
  '\ufeff',
  '0',
]

const page = z.object({
  parcels: z.array(z.object({ identifiers: z.array(z.string()), order: z.unknown() })),
  next: z.string().nullable(),
})

async function start() {
  const relay = await relayOfTest({ delivery: { allowNetworks: ['127.0.0.0/8'] } })
  return { ...relay, operate: await operatorOf(relay) }
}

test('8.6: a delivery has the order in headers, as known at the attempt; its body and signature stay', async () => {
  const receiver = await receiverOfTest()
  const { operate, publicUrl } = await start()
  await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url, sharedKey: KEY })
  const labels = Object.fromEntries(NAUGHTY.map((value, nth) => [`l-${nth}`, value]))
  const order = { reference: 'Å'.repeat(100), labels, note: 'QQNOTE stays here' }
  await push(publicUrl, pushBody())
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1))
  expect(Object.keys(receiver.pushes[0]?.headers ?? {}).filter((name) => /^relay-(label|ref|omit)/.test(name))).toEqual([])
  const { labels: kept } = (await operate('PUT', '/relay/parcels/1001', order)).body
  const body = pushBody({ eventTime: '2026-03-01T11:00:00.250Z' })
  await push(publicUrl, body)
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(2))
  const { headers = {}, body: sent } = receiver.pushes[1] ?? {}
  expect(Buffer.from(sent ?? '')).toEqual(body)
  expect(headers['x-service-hmac-sha256']).toBe(createHmac('sha256', KEY).update(body).digest('base64'))
  const decoded = Object.keys(labels).map((name) => [name, decodeURIComponent(String(headers[`relay-label-${name}`]))])
  expect(Object.fromEntries(decoded)).toEqual(kept)
  expect(headers).toMatchObject({ 'relay-omitted': 'relay-reference' })
  expect(JSON.stringify(headers)).not.toContain('QQNOTE')
  const { deliveries } = Object((await operate('GET', '/relay/deliveries')).body)
  expect((await operate('GET', `/relay/deliveries/${deliveries[0].id}`)).body.request).toMatchObject({
    headers: { 'relay-omitted': 'relay-reference', 'relay-label-l-3': '%3Cscript%3E' },
  })
})

test('8.7: an endpoint with a filter of labels is sent only what happens to parcels of such orders', async () => {
  const receiver = await receiverOfTest()
  const { operate, publicUrl } = await start()
  const wrong = await operate('POST', '/relay/endpoints', { name: 'no', url: receiver.url, filters: { label: ['Priority'] } })
  expect([wrong.status, wrong.body.detail]).toEqual([400, 'filters.label.0 must be the name of a label, or NAME=VALUE.'])
  const filters = { label: ['priority=high', 'express'] }
  const added = await operate('POST', '/relay/endpoints', { name: 'urgent', url: receiver.url, filters })
  expect(added.body.filters).toMatchObject(filters)
  const orders = { '1001': { priority: 'high' }, '1002': { priority: 'low' }, '1003': { express: '' } }
  for (const [id, labels] of Object.entries(orders)) await operate('PUT', `/relay/parcels/${id}`, { labels })
  for (const id of ['1004', '1002', '1001', '1003']) await push(publicUrl, pushBody({ trackingIds: [id] }))
  await push(publicUrl, pushBody({ trackingIds: ['1001', '1002'], status: 'Joined' }))
  // What was said last, of 1002, is that of both.
  await push(publicUrl, pushBody({ trackingIds: ['1001'], status: 'Later' }))
  await push(publicUrl, pushBody({ trackingIds: ['1003'], status: 'Last' }))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(3))
  const sent = receiver.pushes.map(({ body }) => JSON.parse(body.toString()))
  expect(sent.map(({ trackingIds, status }) => `${trackingIds[0]} ${status}`).toSorted()).toEqual([
    '1001 TerminalArrived',
    '1003 Last',
    '1003 TerminalArrived',
  ])
  const late = await operate('POST', '/relay/endpoints', { name: 'late', url: receiver.url, filters, from: 0 })
  expect(late.status).toBe(201)
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(5))
})

test('8.8: parcels are found by the number of their order; a list says it, and names its bad lines', async () => {
  const { operate, internalUrl } = await start()
  const list = [
    'trackingNumber,reference,label:shop',
    'LI1001,ORDER 7,north',
    'LI1002,ORDER 7,',
    `LI1003,${'x'.repeat(101)},`,
    'LI1004,,',
  ].join('\n')
  const headers = { authorization: `Bearer ${await logIn(internalUrl, ADMIN)}`, 'content-type': 'text/csv' }
  const watched = await fetch(`${internalUrl}/relay/parcels/watch`, { method: 'POST', headers, body: list })
  expect(await watched.json()).toMatchObject({
    watched: 3,
    failed: 1,
    errors: [{ line: 4, reason: 'has a wrong reference: it must have at most 100 characters' }],
  })
  const found: unknown[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const listed = await operate('GET', `/relay/parcels?reference=ORDER%207&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)
    const { parcels, next } = page.parse(listed.body)
    found.push(...parcels.map(({ identifiers, order }) => [identifiers[0], order]))
    cursor = next
  }
  expect(found).toEqual([
    ['LI1001', { reference: 'ORDER 7', labels: { shop: 'north' }, note: null }],
    ['LI1002', { reference: 'ORDER 7', labels: {}, note: null }],
  ])
  expect((await operate('GET', '/relay/parcels?reference=none')).body).toEqual({ parcels: [], next: null })
  expect((await operate('GET', '/relay/parcels?reference=a&query=B')).status).toBe(400)
  expect((await operate('GET', '/relay/parcels?reference=ORDER%207&stopped=stale')).body).toMatchObject({ parcels: [] })
  const { events } = Object((await operate('GET', '/relay/events?after=0')).body)
  expect(events[0]).toMatchObject({ kind: 'update', parcel: { reference: 'ORDER 7', labels: { shop: 'north' } } })
})
