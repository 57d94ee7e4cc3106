import { beforeAll, expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { fetchDocumented } from '../../support/portal/api-document.ts'
import { loggedInAt } from '../../support/portal/portal-visitor.ts'
import { ADMIN, logIn, push } from '../../support/relay/relay.ts'
import { relayOfFile } from '../../support/relay/relay-of-file.ts'
import { NO_CARRIER } from '../../support/runner/constants.ts'

const relay = relayOfFile(NO_CARRIER, { serve: { fetchUnknown: false } })
let admin = ''
beforeAll(async () => {
  admin = await logIn(relay().internalUrl, ADMIN)
  await push(relay().publicUrl, pushBody({ trackingIds: ['96000001'], status: 'Created' }))
})

async function get(query: string): Promise<Response> {
  return await fetchDocumented(`${relay().internalUrl}/relay/parcels/96000001?${query}`, { headers: { authorization: `Bearer ${admin}` } })
}

test('11.1: the answer has the bytes that an app was answered; what was not known then is a 404 with knownFrom', async () => {
  const app = await fetch(`${relay().internalUrl}/v1/status/96000001/all`, { headers: { authorization: `Bearer ${admin}` } })
  const found = Object(await (await get(`asOf=${new Date().toISOString()}`)).json())
  expect([found.status, found.known.approximate, found.known.answer.all]).toEqual(['Created', [], await app.text()])
  const early = await get('asOf=2026-01-01T00:00:00Z')
  expect([early.status, await early.json()]).toMatchObject([404, { knownFrom: found.known.knownFrom }])
  const { history } = Object(await (await get('since=2026-01-01T00:00:00Z')).json())
  expect(history).toMatchObject([{ news: { kind: 'new', doors: ['push'] } }])
  expect((await get('asOf=yesterday')).status).toBe(400)
})

test('the page of a parcel shows what was known at a time, or since when it is known', async () => {
  const visitor = await loggedInAt(relay().internalUrl)
  expect((await visitor.get('/parcels/96000001')).text).toContain('As known at')
  expect((await visitor.get('/parcels/96000001?asOf=2099-01-01T00:00')).text).toContain('the relay knew this')
  expect((await visitor.get('/parcels/96000001?asOf=2026-01-01T00:00')).text).toContain('Not known then')
  expect((await visitor.get('/parcels/96000001?asOf=nonsense')).text).toContain('must be a time such as')
})
