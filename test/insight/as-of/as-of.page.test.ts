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

test('a time that is yet to come means now; what is learnt after it cannot be marked', async () => {
  const ahead = Object(await (await get('asOf=2099-01-01T00:00:00Z&since=2026-01-01T00:00:00Z')).json())
  expect([ahead.known.asOf < '2099', ahead.history[0].news.kind]).toEqual([true, 'new'])
  for (const [query, than] of [
    ['since=2099-01-01T00:00:00Z', /^since must be earlier than now, \S+Z\.$/],
    ['asOf=2099-02-01T00:00:00Z&since=2099-01-01T00:00:00Z', /earlier than now/],
    ['asOf=2026-01-01T00:00:00Z&since=2026-01-01T00:00:00Z', /earlier than asOf, 2026-01-01T00:00:00\.000Z/],
  ] as const) {
    const refused = await get(query)
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { detail: expect.stringMatching(than), errors: [{ parameter: 'since' }] },
    ])
  }
})

test('11.1: the page tells of the identifier that it was asked for, which may be known for longer than the first of the parcel', async () => {
  const { publicUrl, internalUrl } = relay()
  await push(publicUrl, pushBody({ trackingIds: ['97000002'], status: 'Created' }))
  const body = Object(
    await (await fetchDocumented(`${internalUrl}/relay/parcels/97000002`, { headers: { authorization: `Bearer ${admin}` } })).json(),
  )
  const between = String(body.history[0].learntAt)
  await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(between))
  await push(publicUrl, pushBody({ trackingIds: ['97000001', '97000002'], status: 'Ingested' }))
  const visitor = await loggedInAt(internalUrl)
  const pageOf = async (identifier: string) => (await visitor.get(`/parcels/${identifier}?asOf=${between.slice(0, -1)}`)).text
  const page = await pageOf('97000002')
  expect(page).toContain('the relay knew this')
  expect(page).toContain('action="/parcels/97000002#known-at"')
  expect(await pageOf('97000001')).toContain('Not known then')
})

test('the page of a parcel shows what was known at a time, or since when it is known', async () => {
  const visitor = await loggedInAt(relay().internalUrl)
  expect((await visitor.get('/parcels/96000001')).text).toContain('As known at')
  expect((await visitor.get('/parcels/96000001?asOf=2099-01-01T00:00')).text).toContain('the relay knew this')
  expect((await visitor.get('/parcels/96000001?asOf=2026-01-01T00:00')).text).toContain('Not known then')
  expect((await visitor.get('/parcels/96000001?asOf=nonsense')).text).toContain('Time must be a time such as')
})

test('the page of a parcel marks what was learnt after a time, to the second', async () => {
  const visitor = await loggedInAt(relay().internalUrl)
  const page = async (query: string) => (await visitor.get(`/parcels/96000001?${query}`)).text
  const plain = await page('')
  expect(plain.match(/type="datetime-local" step="1"/g)).toHaveLength(2)
  expect(plain).not.toContain('<mark>')
  const marked = await page('since=2026-01-01T00:00:05')
  expect(marked).toContain('<mark>new by push</mark>')
  expect(marked).toContain('it had learnt something of 1 entry, which is marked')
  expect(marked).toContain('name="since" type="datetime-local" step="1" value="2026-01-01T00:00:05"')
  expect(await page('asOf=2099-01-01T00:00&since=2026-01-01T00:00')).toContain('<mark>new by push</mark>')
  expect(await page('asOf=2026-01-02T00:00&since=2026-01-01T00:00')).toContain('Not known then')
  const sinceNow = await page(`since=${new Date().toISOString().slice(0, -1)}`)
  expect([sinceNow.includes('it had learnt nothing of it'), sinceNow.includes('<mark>')]).toEqual([true, false])
  expect(await page('asOf=2026-01-01T00:00&since=2026-01-01T00:00')).toContain('Changed since must be earlier than Time.')
  expect(await page('since=2099-01-01T00:00')).toContain('Changed since must be earlier than now.')
  expect(await page('since=nonsense')).toContain('Changed since must be a time such as')
})
