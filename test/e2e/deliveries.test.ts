import { expect, test, vi } from 'vitest'
import { writeDeliveries } from '../support/delivery/many-deliveries.ts'
import { pushBody } from '../support/history/builders.ts'
import { startMoodyReceiver } from '../support/network/moody-receiver.ts'
import { receiverOfTest, type WebhookReceiver } from '../support/network/webhook-receiver.ts'
import { endpointOfTest, operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { changeStoredRows, storedNumber } from '../support/store/stored-rows.ts'

const SECTIONS = { delivery: { schedule: ['100ms', '200ms'], jitter: 0, allowNetworks: ['127.0.0.0/8'] } }
const ofFile = relayOfFile(NO_CARRIER, SECTIONS)

const own = idsOfTest()

async function start(relay = ofFile()) {
  const receiver = await receiverOfTest()
  const operate = await operatorOf(relay)
  const endpoints: string[] = []
  const add = async (name: string, url = receiver.url) => {
    const id = await endpointOfTest(relay, { name, url })
    endpoints.push(id)
    return id
  }
  /** Lists the deliveries to the endpoints of this test. */
  const listed = async (query = '') =>
    (await listedBy(operate, query)).filter(({ endpoint }) => endpoints.includes(String(Object(endpoint).id)))
  return { receiver, operate, add, listed, databasePath: relay.databasePath, push: (body: Uint8Array) => push(relay.publicUrl, body) }
}

const at = (minute: number, trackingIds: readonly string[] = ['1001']) =>
  pushBody({ eventTime: `2026-03-01T10:${String(minute).padStart(2, '0')}:00.000Z`, trackingIds: trackingIds.map(own) })

function refuse(receiver: WebhookReceiver, parcel: string): void {
  receiver.answer((nth) => (receiver.pushes[nth]?.body.includes(`"${parcel}"`) === true ? 422 : 200))
}

type Operate = Awaited<ReturnType<typeof operatorOf>>

async function listedBy(operate: Operate, query: string): Promise<readonly Record<string, unknown>[]> {
  const { deliveries } = (await operate('GET', `/relay/deliveries${query}`)).body
  return Array.isArray(deliveries) ? deliveries : []
}

/** Makes one dead delivery and some delivered ones, and returns the id of the dead delivery. */
async function killOne(world: Awaited<ReturnType<typeof start>>): Promise<string> {
  refuse(world.receiver, own('6666'))
  await world.push(at(1, ['6666']))
  await vi.waitFor(() => expect(world.receiver.pushes.length).toBeGreaterThan(0))
  for (const parcel of ['7001', '7002']) await world.push(at(1, [parcel]))
  await vi.waitFor(async () => expect(await world.listed('?state=dead')).toHaveLength(1))
  return String((await world.listed('?state=dead'))[0]?.id)
}

test('a dead delivery shows every attempt and the receiver’s answers', async () => {
  const world = await start()
  const endpoint = await world.add('shop')
  const id = await killOne(world)
  const { body } = await world.operate('GET', `/relay/deliveries/${id}`)
  expect(body).toMatchObject({ id, state: 'dead', reason: 'receiver_refused', endpoint: { id: endpoint, name: 'shop' }, attemptCount: 3 })
  expect(body.attempts).toEqual(
    Array.from({ length: 3 }, () => ({
      at: expect.any(String),
      durationMs: expect.any(Number),
      status: 422,
      reason: null,
      address: '127.0.0.1',
      answerStart: '',
    })),
  )
  await vi.waitFor(async () => expect(await world.listed('?state=delivered')).toHaveLength(2))
  expect(await world.listed(`?endpoint=${endpoint}`)).toHaveLength(3)
  expect(await listedBy(world.operate, '?endpoint=999999')).toEqual([])
})

test('a delivery shows its request and parcel, and shows an answer as text if it is text', async () => {
  const world = await start()
  const endpoint = await world.add('shop')
  const answers = [Buffer.from('no such order: å…'), Buffer.from([0xff, 0xfe, 0x00]), Buffer.from('€'.repeat(2000))]
  world.receiver.answer((nth) => ({ status: 422, body: answers[nth] ?? '' }))
  const body = at(1, ['1001', '1002'])
  await world.push(body)
  await vi.waitFor(async () => expect(await world.listed('?state=retrying')).toHaveLength(1))
  await vi.waitFor(() => expect(world.receiver.pushes).toHaveLength(3))
  const [one] = await world.listed()
  expect(one).toMatchObject({ parcel: { identifiers: ['1001', '1002'].map(own) } })
  const shown = (await world.operate('GET', `/relay/deliveries/${String(one?.id)}`)).body
  expect(shown).toMatchObject({ status: 'TerminalArrived', detailedStatus: 'ArrivedT2', endpoint: { id: endpoint } })
  const { headers = {} } = world.receiver.pushes[0] ?? {}
  expect(shown.request).toEqual({
    url: world.receiver.url,
    headers: Object.fromEntries(
      ['user-agent', 'content-type', 'webhook-id', 'relay-sequence', 'relay-previous-sequence'].map((name) => [name, headers[name]]),
    ),
    body: body.toString(),
  })
  await vi.waitFor(async () => {
    const { attempts } = (await world.operate('GET', `/relay/deliveries/${String(one?.id)}`)).body
    expect(attempts).toMatchObject([
      { status: 422, answerStart: expect.stringMatching(/^€+$/) },
      { status: 422, answerStart: null, answerStartBase64: Buffer.from([0xff, 0xfe, 0x00]).toString('base64') },
      { status: 422, answerStart: 'no such order: å…' },
    ])
  })
})

test('deliveries are listed in pages, also by any identifier of their parcel', async () => {
  const world = await start()
  const endpoints = [await world.add('shop'), await world.add('billing')]
  for (const minute of [1, 2, 3]) await world.push(at(minute, ['1001', '1002']))
  await world.push(at(1, ['2002']))
  await vi.waitFor(async () => expect(await world.listed('?state=delivered')).toHaveLength(8))
  const pages: number[] = []
  const ids = new Set<unknown>()
  for (let query = `?parcel=${own('1002')}&limit=4`; query !== ''; ) {
    const { deliveries, next } = (await world.operate('GET', `/relay/deliveries${query}`)).body
    if (!Array.isArray(deliveries)) throw new Error('no list')
    pages.push(deliveries.length)
    for (const { id, parcel } of deliveries) {
      expect(parcel).toEqual({ identifiers: ['1001', '1002'].map(own) })
      ids.add(id)
    }
    query = typeof next === 'string' ? `?parcel=${own('1002')}&limit=4&cursor=${next}` : ''
  }
  expect([pages, ids.size]).toEqual([[4, 2], 6])
  expect(await world.listed(`?parcel=${own('1001')}&endpoint=${endpoints[0]}&state=delivered`)).toHaveLength(3)
  expect((await world.operate('GET', `/relay/deliveries?parcel=${own('9999')}`)).status).toBe(404)
  expect((await world.operate('GET', '/relay/deliveries?parcel=a%20b')).status).toBe(400)
})

test('an attempt without an answer shows the reason', async () => {
  const world = await start()
  await world.add('nobody', 'http://127.0.0.1:9/')
  await world.push(at(1))
  await vi.waitFor(async () => expect(await world.listed('?state=retrying')).toHaveLength(1))
  const [waiting] = await world.listed()
  const { body } = await world.operate('GET', `/relay/deliveries/${String(waiting?.id)}`)
  expect(body.attempts).toEqual(expect.arrayContaining([expect.objectContaining({ status: null, reason: 'connection_refused' })]))
})

test('O6: a replayed delivery arrives with the same webhook-id as before', async () => {
  const world = await start()
  await world.add('shop')
  const id = await killOne(world)
  const before = world.receiver.pushes.length
  world.receiver.answer(() => 200)
  expect((await world.operate('POST', `/relay/deliveries/${id}/replay`)).status).toBe(202)
  await vi.waitFor(() => expect(world.receiver.pushes).toHaveLength(before + 1))
  const idsOf6666 = world.receiver.pushes
    .filter(({ body }) => body.includes(`"${own('6666')}"`))
    .map(({ headers }) => headers['webhook-id'])
  expect(idsOf6666).toHaveLength(4)
  expect(new Set(idsOf6666).size).toBe(1)
  await vi.waitFor(async () => expect((await world.operate('GET', `/relay/deliveries/${id}`)).body).toMatchObject({ state: 'delivered' }))
})

test('a replay whose body was deleted ends as dead with the reason, and later events are sent', async () => {
  const world = await start()
  await world.add('shop')
  await world.push(at(1))
  await vi.waitFor(async () => expect(await world.listed('?state=delivered')).toHaveLength(1))
  const id = String((await world.listed())[0]?.id)
  await changeStoredRows(world.databasePath, 'update inbox set body = null')
  expect((await world.operate('POST', `/relay/deliveries/${id}/replay`)).status).toBe(202)
  await vi.waitFor(async () => {
    const { body } = await world.operate('GET', `/relay/deliveries/${id}`)
    expect(body).toMatchObject({ state: 'dead', reason: 'body_gone' })
    expect(body.attempts).toMatchObject([{ status: null, reason: 'body_gone' }, { status: 200 }])
  })
  await world.push(at(2))
  await vi.waitFor(() => expect(world.receiver.pushes.map(({ body }) => body)).toEqual([at(1), at(2)]))
})

test('a replay to an endpoint can be counted first, and keeps the order of each parcel', async () => {
  const world = await start()
  const endpoint = await world.add('shop')
  await killOne(world)
  for (const minute of [2, 3]) await world.push(at(minute, ['7001']))
  await vi.waitFor(async () => expect(await world.listed('?state=delivered')).toHaveLength(4))
  const replay = async (order: object) => (await world.operate('POST', `/relay/endpoints/${endpoint}/replay`, order)).body
  expect(await replay({ since: 0, dryRun: true })).toEqual({
    count: 1,
    more: false,
    parcels: 1,
    oldestQueuedAt: expect.any(String),
    dryRun: true,
  })
  expect(await replay({ since: '2026-01-01T00:00:00Z', state: 'delivered', dryRun: true })).toMatchObject({ count: 4 })
  expect(await replay({ since: '2999-01-01T00:00:00Z', state: 'delivered', dryRun: true })).toMatchObject({ count: 0 })
  const [last] = await world.listed('?state=delivered')
  expect(await replay({ sequence: last?.sequence, state: 'delivered', dryRun: true })).toMatchObject({ count: 1 })
  expect(await replay({ since: last?.sequence, state: 'delivered', dryRun: true })).toMatchObject({ count: 1 })
  const before = world.receiver.pushes.length
  expect(await replay({ parcel: own('7001'), state: 'delivered' })).toEqual({ count: 3, dryRun: false })
  await vi.waitFor(() => expect(world.receiver.pushes).toHaveLength(before + 3))
  const minutes = world.receiver.pushes.slice(before).map(({ body }) => body.toString())
  expect(minutes).toEqual([1, 2, 3].map((minute) => at(minute, ['7001']).toString()))
  expect((await world.operate('POST', `/relay/endpoints/${endpoint}/replay`, {})).status).toBe(400)
})

test('O16: removing an endpoint cancels its deliveries, and disabling an endpoint holds them', async () => {
  const world = await start()
  const [removed, disabled] = [await world.add('removed'), await world.add('disabled')]
  for (const id of [removed, disabled]) await world.operate('PATCH', `/relay/endpoints/${id}`, { enabled: false })
  for (const minute of [1, 2]) await world.push(at(minute))
  await world.operate('DELETE', `/relay/endpoints/${removed}`)
  const [cancelled, held] = [await world.listed('?state=cancelled'), await world.listed('?state=held')]
  expect(cancelled.map(({ reason, endpoint }) => ({ reason, endpoint }))).toEqual(
    Array.from({ length: 2 }, () => ({ reason: 'endpoint_removed', endpoint: { id: removed, name: 'removed' } })),
  )
  expect(held).toHaveLength(2)
  expect(world.receiver.pushes).toHaveLength(0)
  const refused = await world.operate('POST', `/relay/deliveries/${String(cancelled[0]?.id)}/replay`)
  expect(refused).toMatchObject({ status: 409, body: { detail: expect.stringContaining('"removed" was removed') } })
})

test('7.4: undelivered events of a removed endpoint can be sent to another, in order per parcel', async () => {
  const world = await start()
  const removed = await world.add('removed')
  await world.operate('PATCH', `/relay/endpoints/${removed}`, { enabled: false })
  for (const minute of [3, 1, 2]) await world.push(at(minute))
  await world.push(at(1, ['7001']))
  await world.operate('DELETE', `/relay/endpoints/${removed}`)
  const heir = await world.add('heir')
  await world.push(at(4))
  await vi.waitFor(() => expect(world.receiver.pushes).toHaveLength(1))
  const [newest, ...others] = await world.listed('?state=cancelled')
  const replay = (order: object) => world.operate('POST', `/relay/endpoints/${heir}/replay`, order)
  expect((await replay({ of: removed, dryRun: true })).body).toMatchObject({ count: 4, more: false, dryRun: true })
  const one = `/relay/deliveries/${String(newest?.id)}/replay`
  expect((await world.operate('POST', one, { to: '999' })).status).toBe(400)
  expect((await world.operate('POST', one, { to: heir })).status).toBe(202)
  await vi.waitFor(() => expect(world.receiver.pushes).toHaveLength(2))
  expect(world.receiver.pushes[1]).toMatchObject({
    body: at(1, ['7001']),
    headers: { 'webhook-id': newest?.webhookId, 'relay-previous-sequence': '0' },
  })
  const oldest = others.at(-1)
  expect((await replay({ of: removed, parcel: own('1001') })).body).toEqual({ count: 3, dryRun: false })
  await vi.waitFor(() => expect(world.receiver.pushes).toHaveLength(5))
  const arrived = world.receiver.pushes.slice(2)
  expect(arrived.map(({ body }) => body.toString())).toEqual([3, 1, 2].map((minute) => at(minute).toString()))
  expect(arrived[0]?.headers['webhook-id']).toBe(oldest?.webhookId)
  expect(arrived[1]?.headers['relay-previous-sequence']).toBe(arrived[0]?.headers['relay-sequence'])
  expect(await world.listed('?state=cancelled')).toHaveLength(4)
  // The receiver gets the last push before the relay records its answer.
  await vi.waitFor(async () => expect(await world.listed(`?endpoint=${heir}&state=delivered`)).toHaveLength(5))
})

test('each delivery is on exactly one page', async () => {
  const world = await start()
  const id = await world.add('shop')
  await world.operate('PATCH', `/relay/endpoints/${id}`, { enabled: false })
  await Promise.all(Array.from({ length: 250 }, (_, parcel) => world.push(at(1, [String(8000 + parcel)]))))
  const seen: unknown[] = []
  for (let cursor = ''; cursor !== 'null'; ) {
    const { body } = await world.operate('GET', `/relay/deliveries?endpoint=${id}${cursor === '' ? '' : `&cursor=${cursor}`}`)
    if (Array.isArray(body.deliveries)) seen.push(...body.deliveries.map((delivery) => delivery.id))
    cursor = String(body.next)
  }
  expect(seen).toHaveLength(250)
  expect(new Set(seen).size).toBe(250)
  expect((await world.operate('GET', '/relay/deliveries?state=lost')).status).toBe(400)
  expect((await world.operate('GET', '/relay/deliveries/99999')).status).toBe(404)
})

test('a relay that stops interrupts its running attempts and begins no new ones', async () => {
  const key = 'the-key-of-a-slow-endpoint'
  let afterMs = 60_000
  await using receiver = await startMoodyReceiver(key, () => ({ status: 200, afterMs }))
  const folder = temporaryFolder()
  const sections = {
    endpoints: [{ name: 'slow', url: receiver.url, sharedKey: key, concurrency: 2 }],
    delivery: { allowNetworks: ['127.0.0.0/8'] },
  }
  const startOne = () => relayOfTest(sections, { folder })
  const first = await startOne()
  for (let parcel = 0; parcel < 6; parcel++) await push(first.publicUrl, at(1, [String(7000 + parcel)]))
  await vi.waitFor(() => expect(receiver.arrivals).toHaveLength(2))
  await first.stop()
  afterMs = 0
  const again = await startOne()
  const operate = await operatorOf(again)
  await vi.waitFor(async () => expect(await listedBy(operate, '?state=delivered')).toHaveLength(6))
  const ids = (await listedBy(operate, '')).map(({ id }) => String(id))
  const told = await Promise.all(ids.map(async (id) => (await operate('GET', `/relay/deliveries/${id}`)).body.attempts))
  const interrupted = told.flat().filter((attempt) => Object(attempt).reason === 'interrupted')
  expect(interrupted).toHaveLength(2)
})

test('7.4: deliveries of a removed endpoint show as cancelled before their rows change', async () => {
  const world = await start(await relayOfTest(SECTIONS))
  const id = await world.add('shop')
  await world.operate('PATCH', `/relay/endpoints/${id}`, { enabled: false })
  await writeDeliveries(world.databasePath, { endpointId: id, count: 500, state: 1 })
  await world.operate('DELETE', `/relay/endpoints/${id}`)
  expect(await world.listed('?state=cancelled')).toHaveLength(100)
  expect(await world.listed('?state=held')).toHaveLength(0)
  const written = () => storedNumber(world.databasePath, 'select count(*) from delivery where state = 4')
  await vi.waitFor(async () => expect(await written()).toBe(500))
})
