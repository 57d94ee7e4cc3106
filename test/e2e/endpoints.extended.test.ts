import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startMoodyReceiver } from '../support/network/moody-receiver.ts'
import { expectedSignature, receiverOfTest, type WebhookReceiver } from '../support/network/webhook-receiver.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, type Sections } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { commandsOf } from '../support/relay/run-command.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { onlyLong } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { changeStoredRows, pruneStoredFeed } from '../support/store/stored-rows.ts'

const GIVEN = 'canary-key-given-by-the-operator'

const SECTIONS = { delivery: { schedule: ['100ms', '200ms'], jitter: 0, allowNetworks: ['127.0.0.0/8'] } }
const ofFile = relayOfFile(NO_CARRIER, SECTIONS)
const own = idsOfTest()

/** The relay that the tests of this file share. It loses its endpoints after each test. */
async function share() {
  const operate = await operatorOf(ofFile())
  onTestFinished(async () => {
    const { endpoints } = (await operate('GET', '/relay/endpoints')).body
    for (const { id } of Array.isArray(endpoints) ? endpoints : []) await operate('DELETE', `/relay/endpoints/${id}`)
  })
  return { ...ofFile(), operate }
}

async function start(folder = temporaryFolder(), sections: Sections = {}) {
  const relay = await relayOfTest({ ...SECTIONS, ...sections }, { folder })
  return { ...relay, operate: await operatorOf(relay) }
}

const at = (minute: number, trackingId = '1001') =>
  pushBody({ eventTime: `2026-03-01T10:${String(minute).padStart(2, '0')}:00.000Z`, trackingIds: [own(trackingId)] })

const bodiesOf = (receiver: WebhookReceiver) => receiver.pushes.map(({ body }) => body.toString())

test('W4: an endpoint’s key has 32 random bytes, is shown once, and signs its events', async () => {
  const receiver = await receiverOfTest()
  const { operate, publicUrl } = await share()
  const added = await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })
  expect(added.status).toBe(201)
  const key = String(added.body.sharedKey)
  expect(Buffer.from(key, 'base64')).toHaveLength(32)
  await push(publicUrl, at(1))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1))
  expect(receiver.pushes[0]?.headers['x-service-hmac-sha256']).toBe(expectedSignature(at(1), key))
  const listed = await operate('GET', '/relay/endpoints')
  expect(listed.body).toMatchObject({ endpoints: [{ name: 'shop', origin: 'managed', enabled: true, signature: 'carrier' }] })
  expect(listed.text).not.toContain(key)
})

test('W4: no later answer, log line or file shows a key, whether it was given or generated', async () => {
  const receiver = await receiverOfTest()
  receiver.answer(() => 500)
  const { operate, publicUrl, lines, stop, folder, internalUrl } = await start(temporaryFolder(), { log: { level: 'debug' } })
  const given = await operate('POST', '/relay/endpoints', { name: 'given', url: receiver.url, sharedKey: GIVEN })
  const made = await operate('POST', '/relay/endpoints', { name: 'made', url: receiver.url })
  const id = String(given.body.id)
  const rotated = await operate('PATCH', `/relay/endpoints/${id}`, { sharedKey: null })
  const keys = [GIVEN, String(made.body.sharedKey), String(rotated.body.sharedKey)]
  expect(new Set(keys).size).toBe(3)
  await push(publicUrl, at(1))
  await vi.waitFor(() => expect(receiver.pushes.length).toBeGreaterThan(1))
  const answers = [
    await operate('GET', '/relay/endpoints'),
    await operate('GET', `/relay/endpoints/${id}`),
    await operate('PATCH', `/relay/endpoints/${id}`, { backfill: true }),
    await operate('POST', `/relay/endpoints/${id}/test`),
    await operate('POST', '/relay/endpoints', { name: 'given', url: receiver.url, sharedKey: GIVEN }),
    await operate('POST', '/relay/endpoints', { name: 'other', url: 'ftp://x', sharedKey: GIVEN }),
    await operate('DELETE', `/relay/endpoints/${id}`),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 409, 400, 204])
  const metrics = await (await fetchDocumented(`${internalUrl}/metrics`)).text()
  await stop()
  const stored = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'))
  const seen = [...answers.map(({ text }) => text), JSON.stringify(lines), metrics, ...stored]
  for (const key of keys) for (const text of seen) expect(text.includes(key)).toBe(false)
  expect(statSync(join(folder, 'relay.db.key')).mode & 0o777).toBe(0o600)
})

test('an endpoint’s key survives a restart, and cannot be read without the at-rest key', async () => {
  const receiver = await receiverOfTest()
  const folder = temporaryFolder()
  const atRest = (byte: number) => Buffer.alloc(32, byte).toString('base64')
  const first = await start(folder, { secrets: { atRestKeys: [atRest(1)] } })
  await first.operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url, sharedKey: GIVEN })
  await first.stop()
  expect(readdirSync(folder)).not.toContain('relay.db.key')
  const second = await start(folder, { secrets: { atRestKeys: [atRest(2), atRest(1)] } })
  await push(second.publicUrl, at(1))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1))
  expect(receiver.pushes[0]?.headers['x-service-hmac-sha256']).toBe(expectedSignature(at(1), GIVEN))
  await second.stop()
  const third = await start(folder, { secrets: { atRestKeys: [atRest(2)] } })
  await push(third.publicUrl, at(2))
  await vi.waitFor(() => expect(third.lines.some(({ message }) => message.includes('cannot be opened'))).toBe(true))
  expect(receiver.pushes).toHaveLength(1)
})

test('O3: a 410 disables an endpoint, and enabling it sends all waiting events in order', async () => {
  const receiver = await receiverOfTest()
  receiver.answer(() => 410)
  const { operate, publicUrl } = await share()
  const { body } = await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })
  const path = `/relay/endpoints/${String(body.id)}`
  await push(publicUrl, at(1))
  await vi.waitFor(async () => expect((await operate('GET', path)).body).toMatchObject({ enabled: false, disabledBecause: 'gone' }))
  for (const minute of [2, 3]) await push(publicUrl, at(minute))
  await vi.waitFor(async () => expect((await operate('GET', path)).body).toMatchObject({ waiting: 3, givenUp: 0 }))
  expect((await operate('GET', path)).body).toMatchObject({
    disabledSince: expect.any(String),
    disabledBy: null,
    oldestWaitingSince: expect.any(String),
    lastFailure: { at: expect.any(String), status: 410, reason: null, delivery: expect.any(String) },
  })
  receiver.answer(() => 200)
  const before = receiver.pushes.length
  expect((await operate('PATCH', path, { enabled: true })).body).toMatchObject({ enabled: true, disabledBecause: null, failingSince: null })
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(before + 3))
  expect(bodiesOf(receiver).slice(before)).toEqual([1, 2, 3].map((minute) => at(minute).toString()))
})

test('O16: events for a disabled endpoint wait, and a removed endpoint gets nothing more', async () => {
  const [kept, removed] = [await receiverOfTest(), await receiverOfTest()]
  const { operate, publicUrl } = await share()
  const keep = await operate('POST', '/relay/endpoints', { name: 'kept', url: kept.url, enabled: false })
  const remove = await operate('POST', '/relay/endpoints', { name: 'removed', url: removed.url, enabled: false })
  for (const minute of [1, 2]) await push(publicUrl, at(minute))
  expect((await operate('DELETE', `/relay/endpoints/${String(remove.body.id)}`)).status).toBe(204)
  expect(kept.pushes).toHaveLength(0)
  await operate('PATCH', `/relay/endpoints/${String(keep.body.id)}`, { enabled: true })
  await vi.waitFor(() => expect(kept.pushes).toHaveLength(2))
  await operate('POST', '/relay/endpoints', { name: 'removed', url: removed.url })
  await push(publicUrl, at(3))
  await vi.waitFor(() => expect(bodiesOf(removed)).toEqual([at(3).toString()]))
})

onlyLong(test)('O16: deliveries that wait for a slow endpoint when it is removed are never sent', async () => {
  await using slow = await startMoodyReceiver(GIVEN, () => ({ status: 200, afterMs: 5_000 }))
  const other = await receiverOfTest()
  const { operate, publicUrl, stop } = await start()
  const { body } = await operate('POST', '/relay/endpoints', { name: 'slow', url: slow.url, sharedKey: GIVEN, concurrency: 2 })
  for (let parcel = 0; parcel < 8; parcel++) await push(publicUrl, at(1, String(7000 + parcel)))
  await vi.waitFor(() => expect(slow.arrivals).toHaveLength(2))
  expect((await operate('DELETE', `/relay/endpoints/${String(body.id)}`)).status).toBe(204)
  await vi.waitFor(() => expect(slow.arrivals.filter(({ accepted }) => accepted)).toHaveLength(2))
  // If the relay still attempted deliveries to the removed endpoint, it would begin them before this push arrives, and `stop` would wait for them.
  await operate('POST', '/relay/endpoints', { name: 'other', url: other.url })
  await push(publicUrl, at(2))
  await vi.waitFor(() => expect(bodiesOf(other)).toEqual([at(2).toString()]))
  await stop()
  expect(slow.arrivals).toHaveLength(2)
})

test('7.4: an endpoint that starts at a sequence gets the exact bytes of events from there on', async () => {
  const [first, second] = [await receiverOfTest(), await receiverOfTest()]
  const folder = temporaryFolder()
  const relay = await start(folder)
  const odd = Buffer.from(`${at(2).toString().slice(0, -1)} ,\r\n "big": 12345678901234567890 }`)
  for (const body of [at(1), odd, at(3)]) await push(relay.publicUrl, body)
  const added = await relay.operate('POST', '/relay/endpoints', { name: 'managed', url: first.url, from: 2 })
  await push(relay.publicUrl, at(4))
  await vi.waitFor(() => expect(bodiesOf(first)).toEqual([odd, at(3), at(4)].map(String)))
  const path = `/relay/endpoints/${String(added.body.id)}`
  await vi.waitFor(async () => expect((await relay.operate('GET', path)).body).toMatchObject({ queuedTo: null }))
  await relay.stop()
  const sections = { endpoints: [{ name: 'configured', url: second.url, sharedKey: GIVEN, from: 0 }] }
  const again = await start(folder, sections)
  await vi.waitFor(() => expect(bodiesOf(second)).toEqual([at(1), odd, at(3), at(4)].map(String)))
  await again.stop()
  // The relay knows the endpoint now, so `from` no longer has an effect.
  const third = await start(folder, sections)
  await push(third.publicUrl, at(5))
  await vi.waitFor(() => expect(bodiesOf(second).at(-1)).toBe(at(5).toString()))
  await vi.waitFor(() => expect([first.pushes.length, second.pushes.length]).toEqual([4, 5]))
})

test('an endpoint that would start before the kept feed is refused, with the oldest sequence', async () => {
  const { operate, publicUrl, databasePath } = await start()
  for (const minute of [1, 2, 3]) await push(publicUrl, at(minute))
  await pruneStoredFeed(databasePath, 2)
  const refused = await operate('POST', '/relay/endpoints', { name: 'shop', url: 'http://127.0.0.1:9/', from: 1 })
  expect(refused).toMatchObject({ status: 410, body: { type: 'urn:parcel-relay:error:feed_gone', oldestSequence: 3 } })
  expect((await operate('GET', '/relay/endpoints')).body).toEqual({ endpoints: [], next: null })
})

test('a test push is signed and marked, names no parcel, and is not an event of the feed', async () => {
  const receiver = await receiverOfTest()
  receiver.answer(() => 418)
  const { operate } = await share()
  const { body } = await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url, sharedKey: GIVEN, enabled: false })
  const path = `/relay/endpoints/${String(body.id)}`
  expect((await operate('POST', `${path}/test`)).body).toMatchObject({ result: 'rejected', status: 418, reason: null })
  const [pushed] = receiver.pushes
  expect(pushed?.headers).toMatchObject({
    'relay-test': 'true',
    'x-service-hmac-sha256': expectedSignature(pushed?.body ?? Buffer.of(), GIVEN),
  })
  expect(JSON.parse(String(pushed?.body))).toMatchObject({ status: 'RelayTest', trackingIds: [] })
  expect((await operate('GET', path)).body).toMatchObject({ failingSince: null })
})

test('an endpoint of the config file can be changed only in the file', async () => {
  const receiver = await receiverOfTest()
  const { operate } = await start(temporaryFolder(), { endpoints: [{ name: 'shop', url: receiver.url, sharedKey: GIVEN }] })
  const { endpoints } = (await operate('GET', '/relay/endpoints')).body
  expect(endpoints).toMatchObject([{ name: 'shop', origin: 'config' }])
  const path = `/relay/endpoints/${Array.isArray(endpoints) ? endpoints[0].id : ''}`
  const refusals = [
    await operate('PATCH', path, { enabled: false }),
    await operate('POST', `${path}/rotate`),
    await operate('DELETE', path),
  ]
  for (const refused of refusals) {
    expect(refused).toMatchObject({ status: 409, body: { type: 'urn:parcel-relay:error:endpoint_read_only' } })
  }
  expect((await operate('POST', `${path}/test`)).body).toMatchObject({ result: 'accepted' })
})

const REFUSED = [
  [{ url: 'http://169.254.169.254/latest' }, 'url'],
  [{ url: 'file:///etc/passwd' }, 'url'],
  [{ sharedKey: 'short' }, 'sharedKey'],
  [{ retries: 3 }, 'retries'],
  [{ name: '' }, 'name'],
  [{ schedule: ['5 minutes'] }, 'schedule'],
  [{ from: 777_777 }, 'from'],
  [{ from: 'yesterday' }, 'from'],
] as const

test('impossible settings are refused, and the error names what is wrong', async () => {
  const { operate } = await share()
  for (const [change, named] of REFUSED) {
    const refused = await operate('POST', '/relay/endpoints', { name: 'shop', url: 'http://127.0.0.1:9/', ...change })
    expect(refused).toMatchObject({ status: 400, body: { detail: expect.stringContaining(named) } })
  }
  expect((await operate('GET', '/relay/endpoints')).body).toEqual({ endpoints: [], next: null })
})

test('only operators may use the routes of endpoints, and an unknown id is a 404', async () => {
  const { internalUrl, operate } = await share()
  expect((await fetchDocumented(`${internalUrl}/relay/endpoints`)).status).toBe(401)
  for (const id of ['777', 'x', '%00']) expect((await operate('PATCH', `/relay/endpoints/${id}`, { enabled: true })).status).toBe(404)
})

test('every route that sets a key refuses keys that the Standard Webhooks library refuses', async () => {
  const { operate } = await share()
  const plain = { sharedKey: 'a plain text and no Base64' }
  const signature = { signature: 'standard-webhooks' }
  const add = { name: 'standard', url: 'http://127.0.0.1:9/', enabled: false }
  const refused = { status: 400, body: { errors: [{ detail: expect.stringContaining('must be Base64') }] } }
  expect(await operate('POST', '/relay/endpoints', { ...add, ...signature, ...plain })).toMatchObject(refused)
  const { id } = (await operate('POST', '/relay/endpoints', { ...add, ...plain })).body
  const path = `/relay/endpoints/${String(id)}`
  expect(await operate('PATCH', path, signature)).toMatchObject(refused)
  expect((await operate('PATCH', path, { ...signature, sharedKey: null })).body).toMatchObject(signature)
  expect(await operate('PATCH', path, plain)).toMatchObject(refused)
  expect(await operate('POST', `${path}/rotate`, plain)).toMatchObject(refused)
  expect((await operate('GET', path)).body).toMatchObject(signature)
})

test('S21: a name that a damaged endpoint has is refused with the remedy, which works', async () => {
  const { operate, internalUrl, databasePath } = await share()
  const settings = { name: 'shop', url: 'http://127.0.0.1:9/' }
  const { id } = (await operate('POST', '/relay/endpoints', settings)).body
  await changeStoredRows(databasePath, "update endpoint set settings = '{' where id = ?", Number(id))
  const refused = await operate('POST', '/relay/endpoints', settings)
  const remedy = `parcel-relay endpoints remove ${String(id)} --yes`
  expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining(`"${remedy}" (DELETE /relay/endpoints/{id})`)])
  const removed = await commandsOf({ internalUrl })('endpoints', 'remove', String(id), '--yes')
  expect([removed.code, removed.stderr]).toEqual([0, ''])
  expect((await operate('POST', '/relay/endpoints', settings)).status).toBe(201)
  expect((await operate('DELETE', `/relay/endpoints/${String(id)}`)).status).toBe(404)
})
