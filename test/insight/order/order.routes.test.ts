import { beforeAll, expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { fetchDocumented } from '../../support/portal/api-document.ts'
import { ADMIN, logIn, push, SHOP } from '../../support/relay/relay.ts'
import { relayOfFile } from '../../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'

const relay = relayOfFile(NO_CARRIER, { serve: { fetchUnknown: false } })
let admin = ''
beforeAll(async () => {
  admin = await logIn(relay().internalUrl, ADMIN)
})

async function call(method: string, path: string, body?: unknown, token = admin): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
  return await fetchDocumented(`${relay().internalUrl}/relay/${path}`, init)
}

const ORDER = { reference: 'ORDER-1207', labels: { priority: 'high', shop: 'north' }, note: 'A gift' }

async function lastSequence(): Promise<number> {
  const { lastSequence: last } = Object(await (await call('GET', 'events?after=999999999999999')).json())
  return Number(last)
}

test('8.2: a PUT replaces what was said, also of a parcel that nobody knew, which is then watched', async () => {
  const saved = await call('PUT', 'parcels/or1001', ORDER)
  expect([saved.status, saved.headers.get('location'), await saved.json()]).toEqual([
    201,
    '/relay/parcels/OR1001',
    { identifier: 'OR1001', ...ORDER, created: true, changed: true },
  ])
  expect(await (await call('GET', 'parcels/OR1001')).json()).toMatchObject({ order: ORDER, cadence: { nextCheckAt: expect.any(String) } })
  expect(await (await call('GET', 'parcels?query=OR1001')).json()).toMatchObject({ parcels: [{ order: ORDER }] })
  const again = await call('PUT', 'parcels/OR1001', { reference: 'ORDER-1208' })
  expect([again.status, await again.json()]).toEqual([
    200,
    { identifier: 'OR1001', reference: 'ORDER-1208', labels: {}, note: null, created: false, changed: true },
  ])
})

test('8.4: a change ends the wait of who follows the feed, with an update of the whole parcel', async () => {
  await push(relay().publicUrl, pushBody({ trackingIds: ['OR2001'] }))
  const after = await lastSequence()
  const followed = call('GET', `events?after=${after}&wait=30s`)
  await call('PUT', 'parcels/OR2001', ORDER)
  expect(await (await followed).json()).toMatchObject({ events: [{ kind: 'update', entry: null, parcel: { identifiers: ['OR2001'] } }] })
  expect(await (await call('PUT', 'parcels/OR2001', ORDER)).json()).toMatchObject({ changed: false })
  expect(await lastSequence()).toBe(after + 1)
})

test('8.5: the audit trail says who changed it, and none of its words; an erased identifier is a 404', async () => {
  await call('PUT', 'parcels/OR3001', ORDER)
  const { actions } = Object(await (await call('GET', 'audit?target=parcel:OR3001')).json())
  expect(actions).toMatchObject([{ action: 'parcel.order_changed', by: { name: 'admin' }, detail: { changed: true, created: true } }])
  expect(JSON.stringify(actions)).not.toContain('ORDER-1207')
  await call('DELETE', 'parcels/OR3001')
  const refused = await call('PUT', 'parcels/OR3001', ORDER)
  expect([refused.status, await refused.json()]).toMatchObject([404, { detail: expect.stringContaining('was erased at') }])
})

test('8.1: what is wrong is refused with its place, and nothing is lost', async () => {
  await call('PUT', 'parcels/OR4001', ORDER)
  const wrong = await call('PUT', 'parcels/OR4001', { reference: '', labels: { Shop: 'x', ok: 1 }, notes: 'x' })
  expect([wrong.status, await wrong.json()]).toMatchObject([
    400,
    {
      errors: [
        { pointer: '#/reference', detail: 'reference must have 1 to 100 characters.' },
        { pointer: '#/labels/ok', detail: 'labels.ok must be text.' },
        { pointer: '#/notes', detail: 'There is no member "notes" here; did you mean "note"?' },
      ],
    },
  ])
  expect((await call('PUT', 'parcels/OR4', ORDER)).status).toBe(400)
  expect(await (await call('GET', 'parcels/OR4001')).json()).toMatchObject({ order: ORDER })
})

test('only an app with the scope admin may say it', async () => {
  const shop = await logIn(relay().internalUrl, SHOP)
  expect((await call('PUT', 'parcels/OR5001', ORDER, shop)).status).toBe(403)
  await call('PUT', 'parcels/OR5001', ORDER)
  expect((await call('GET', 'parcels/OR5001', undefined, shop)).status).toBe(200)
})
