import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../faults/world.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { expectedSignature, receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { CARRIER_LOGIN, SHARED_KEY } from '../support/relay/relay.ts'

// Each test shows a row of "What differs from the carrier" in docs/integrating.md.

const KEY = 'the-key-of-the-endpoint-itself'
const entry = (minute: number) => ({ eventTimestamp: `2026-03-01T10:0${minute}:00Z` })

async function start() {
  const world = await startWorld({ delivery: { allowNetworks: ['127.0.0.0/8'] } })
  onTestFinished(() => world.stop())
  return world
}

test('the carrier’s login is refused, and a parcel is found by its number or its id in any case', async () => {
  const { carrier, internalUrl, push, get } = await start()
  const body = JSON.stringify(CARRIER_LOGIN)
  const login = await fetch(`${internalUrl}/auth/token`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  expect(login.status).toBe(401)
  carrier.says.set('WA300000001SE', () => answerBody({ trackingIds: ['75000001'] }))
  expect((await push(pushBody({ trackingIds: ['75000001'] }))).status).toBe(200)
  for (const identifier of ['WA300000001SE', 'wa300000001se', '75000001'])
    expect([identifier, (await get(`/v1/status/${identifier}/all`)).status]).toEqual([identifier, 200])
})

test('only a 404 of the carrier becomes a 404; known parcels are served while it is down', async () => {
  const { carrier, get, ...world } = await start()
  const operate = await operatorOf(world)
  carrier.says.set('WA300000001SE', () => answerBody({ statuses: [entry(1), entry(2)] }))
  expect((await get('/v1/status/WA300000001SE/all')).headers.get('cache-status')).toContain('fwd=miss')
  expect((await operate('GET', '/relay/parcels/WA300000001SE')).body).toMatchObject({ cadence: { nextCheckAt: expect.any(String) } })
  expect((await get('/v1/status/WA300000002SE/all')).status).toBe(404)
  carrier.setDown(true)
  expect((await get('/v1/status/WA300000002SE/all')).status).toBe(404)
  const unknown = await get('/v1/status/WA300000003SE/all')
  expect([unknown.status, unknown.headers.get('content-type')]).toEqual([503, 'application/problem+json'])
  expect(Number(unknown.headers.get('retry-after'))).toBeGreaterThan(0)
  const known = await get('/v1/status/WA300000001SE/latest')
  expect([known.status, Number(known.headers.get('age'))]).toEqual([200, expect.any(Number)])
})

test('an entry stays when the carrier no longer lists it', async () => {
  const { carrier, all, refresh } = await start()
  carrier.says.set('WA300000001SE', () => answerBody({ statuses: [entry(2), entry(1)] }))
  expect((await all('WA300000001SE')).statuses).toHaveLength(2)
  carrier.says.set('WA300000001SE', () => answerBody({ statuses: [entry(2)] }))
  expect(await refresh('WA300000001SE')).toBe(200)
  expect((await all('WA300000001SE')).statuses).toHaveLength(2)
})

test('after a poll, an entry has the time and place of the poll instead of those of the push', async () => {
  const { carrier, push, all, refresh } = await start()
  await push(pushBody({ trackingIds: ['75000001'], eventTime: '2026-03-01T10:00:25.383Z', location: 'Malmö' }))
  expect((await all('75000001')).statuses).toMatchObject([{ eventTimestamp: '2026-03-01T10:00:25.383Z', location: 'Malmö' }])
  const { status, detailedStatus } = JSON.parse(pushBody().toString()) as Record<'status' | 'detailedStatus', string>
  const polled = { eventTimestamp: '2026-03-01T10:00:25Z', status, detailedStatus, location: '' }
  carrier.says.set('75000001', () => answerBody({ trackingIds: ['75000001'], statuses: [polled] }))
  expect(await refresh('75000001')).toBe(200)
  expect((await all('75000001')).statuses).toMatchObject([{ eventTimestamp: '2026-03-01T10:00:25Z', location: '' }])
})

test('the nearest language is served, and the path of a request must be exact', async () => {
  const { push, get } = await start()
  await push(pushBody({ trackingIds: ['75000001'], texts: { en: 'Arrived', sv: 'Framme' } }))
  const languageOf = async (query: string) => (await get(`/v1/status/75000001/all${query}`)).headers.get('content-language')
  expect(await languageOf('')).toBe('en')
  expect(await languageOf('?language=sv-SE')).toBe('sv')
  expect(await languageOf('?language=fi')).toBe('en')
  for (const query of ['?language=no%20tag', '?language=', '?language=en&language=sv'])
    expect([query, (await get(`/v1/status/75000001/all${query}`)).status]).toEqual([query, 400])
  for (const path of ['/v1/status/75000001/all/', '/V1/status/75000001/all', '/v1/status/75000001/All'])
    expect([path, (await get(path)).status]).toEqual([path, 404])
})

test('an event that only a poll found is pushed in the carrier’s form, signed for the endpoint', async () => {
  const { carrier, push, refresh, ...world } = await start()
  const receiver = await receiverOfTest()
  const operate = await operatorOf(world)
  await push(pushBody({ trackingIds: ['75000001'], eventTime: '2026-03-01T10:00:00.000Z' }))
  await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url, sharedKey: KEY })
  const polled = { ...entry(5), location: '', detailedStatusDescription: 'At the door' }
  carrier.says.set('75000001', () => answerBody({ trackingIds: ['75000001'], statuses: [polled, entry(0)] }))
  expect(await refresh('75000001')).toBe(200)
  await expect.poll(() => receiver.pushes.length).toBeGreaterThan(0)
  const { body = Buffer.of(), headers = {} } = receiver.pushes[0] ?? {}
  expect(headers['x-service-hmac-sha256']).toBe(expectedSignature(body, KEY))
  expect(expectedSignature(body, KEY)).not.toBe(expectedSignature(body, SHARED_KEY))
  expect(JSON.parse(body.toString())).toMatchObject({
    eventTime: '2026-03-01T10:05:00.000Z',
    location: null,
    detailedStatusDescription: [{ languageCode: 'en', value: 'At the door' }],
  })
})

test('an impossible tracking number is a 400, and so is an incomplete login', async () => {
  const { internalUrl, get } = await start()
  for (const number of ['a!b', 'AB1', 'A'.repeat(41)])
    expect([number, (await get(`/v1/status/${number}/all`)).status]).toEqual([number, 400])
  for (const body of ['{', '{"username":"shop"}']) {
    const login = await fetch(`${internalUrl}/auth/token`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    expect([body, login.status]).toEqual([body, 400])
  }
})
