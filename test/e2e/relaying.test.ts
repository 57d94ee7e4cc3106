import { expect, test, vi } from 'vitest'
import { type PushFields, pushBody } from '../support/history/builders.ts'
import { expectedSignature, receiverOfTest } from '../support/network/webhook-receiver.ts'
import { endpointOfTest } from '../support/relay/manage.ts'
import { ADMIN, ask, logIn, push, SHARED_KEY } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { onlyLong } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const KEY = 'the-key-of-the-endpoint'
const SCHEDULE = ['100ms', '200ms', '300ms']

async function startWithEndpoints(endpoints: readonly object[], folder = temporaryFolder(), schedule = SCHEDULE) {
  const sections = {
    endpoints: endpoints.map((endpoint) => ({ sharedKey: KEY, ...endpoint })),
    delivery: { schedule, allowNetworks: ['127.0.0.0/8'] },
  }
  return await relayOfTest(sections, { folder })
}

const ofFile = relayOfFile(NO_CARRIER, { delivery: { schedule: SCHEDULE, allowNetworks: ['127.0.0.0/8'] } })
const own = idsOfTest()

/** Until the test ends, the relay that all tests of this file share has these endpoints too. */
async function withEndpoints(endpoints: readonly object[]) {
  for (const endpoint of endpoints) await endpointOfTest(ofFile(), { sharedKey: KEY, ...endpoint })
  return ofFile()
}

const at = (minute: number, { trackingIds = ['1001'], ...change }: PushFields & { readonly trackingIds?: readonly string[] } = {}) =>
  pushBody({ eventTime: `2026-03-01T10:${String(minute).padStart(2, '0')}:00.000Z`, trackingIds: trackingIds.map(own), ...change })

test('7.1: an endpoint gets the exact bytes of a push, signed with its own key', async () => {
  const receiver = await receiverOfTest()
  const relay = await withEndpoints([{ name: 'shop', url: receiver.url }])
  const body = Buffer.from(`${at(1).toString().slice(0, -1)} ,\r\n "big": 12345678901234567890 }`)
  await push(relay.publicUrl, body)
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1))
  const [first] = receiver.pushes
  expect(first?.body.equals(body)).toBe(true)
  expect(first?.headers).toMatchObject({
    'content-type': 'application/json',
    'x-service-hmac-sha256': expectedSignature(body, KEY),
    'relay-previous-sequence': '0',
    'webhook-id': expect.stringMatching(/^[0-9a-f]{12}_\d+$/),
  })
})

test('7.3: a parcel’s events arrive in order of sequence, each naming the one before it', async () => {
  const receiver = await receiverOfTest()
  receiver.answer((nth) => (nth % 2 === 0 ? 503 : 200))
  const relay = await withEndpoints([{ name: 'shop', url: receiver.url }])
  const bodies = [5, 3, 4, 1, 2].map((minute) => at(minute))
  for (const body of bodies) await push(relay.publicUrl, body)
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(10))
  const accepted = receiver.pushes.filter((_, nth) => nth % 2 === 1)
  expect(accepted.map(({ body }) => body.toString())).toEqual(bodies.map(String))
  const chain = accepted.map(({ headers }) => [headers['relay-previous-sequence'], headers['relay-sequence']])
  for (const [place, [previous]] of chain.entries()) expect(previous).toBe(place === 0 ? '0' : chain[place - 1]?.[1])
  const tries = receiver.pushes.map(({ headers }) => headers['webhook-id'])
  expect(tries.filter((_, nth) => nth % 2 === 0)).toEqual(tries.filter((_, nth) => nth % 2 === 1))
})

test('7.3: an endpoint that cannot be reached does not hold back other endpoints', async () => {
  const healthy = await receiverOfTest()
  const relay = await withEndpoints([
    { name: 'blackhole', url: 'http://127.0.0.1:9/nobody' },
    { name: 'shop', url: healthy.url },
  ])
  await Promise.all(Array.from({ length: 40 }, (_, parcel) => push(relay.publicUrl, at(1, { trackingIds: [String(5000 + parcel)] }))))
  await vi.waitFor(() => expect(healthy.pushes).toHaveLength(40))
})

test('I12: a push repeated many times is one event to an endpoint', async () => {
  const receiver = await receiverOfTest()
  const relay = await withEndpoints([{ name: 'shop', url: receiver.url }])
  await Promise.all(Array.from({ length: 100 }, () => push(relay.publicUrl, at(1))))
  await push(relay.publicUrl, at(2))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(2))
})

onlyLong(test)('7.4: an endpoint that is down loses nothing, even after its schedule and a restart', async () => {
  const receiver = await receiverOfTest()
  receiver.answer(() => 500)
  const folder = temporaryFolder()
  const first = await startWithEndpoints([{ name: 'shop', url: receiver.url }], folder, ['20ms', '20ms'])
  await push(first.publicUrl, at(1))
  await push(first.publicUrl, at(2))
  // The schedule allows three attempts. The relay goes on after that.
  await vi.waitFor(() => expect(receiver.pushes.length).toBeGreaterThanOrEqual(5))
  await first.stop()
  receiver.answer(() => 200)
  const before = receiver.pushes.length
  await startWithEndpoints([{ name: 'shop', url: receiver.url }], folder, ['20ms', '20ms'])
  await vi.waitFor(() => expect(receiver.pushes.length).toBe(before + 2))
  expect(receiver.pushes.slice(-2).map(({ body }) => body.toString())).toEqual([at(1).toString(), at(2).toString()])
})

test('7.4: a 410 disables an endpoint, and later events wait', async () => {
  const [receiver, other] = [await receiverOfTest(), await receiverOfTest()]
  receiver.answer(() => 410)
  const relay = await startWithEndpoints([
    { name: 'shop', url: receiver.url },
    { name: 'other', url: other.url },
  ])
  await push(relay.publicUrl, at(1))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1))
  await vi.waitFor(() => expect(relay.lines.some(({ message }) => message.includes('answered 410'))).toBe(true))
  await push(relay.publicUrl, at(2))
  await push(relay.publicUrl, at(3, { trackingIds: ['7777'] }))
  // `stop` waits for running attempts. So if the disabled endpoint is sent something, the count below shows it.
  await vi.waitFor(() => expect(other.pushes).toHaveLength(3))
  await relay.stop()
  expect(receiver.pushes).toHaveLength(1)
})

test('filters and backfill decide what an endpoint gets', async () => {
  const [all, delivered] = [await receiverOfTest(), await receiverOfTest()]
  const relay = await withEndpoints([
    { name: 'all', url: all.url },
    { name: 'delivered', url: delivered.url, filters: { status: ['DeliverySucceeded'] } },
  ])
  await push(relay.publicUrl, at(1))
  await push(relay.publicUrl, at(2, { status: 'DeliverySucceeded', detailedStatus: 'DeliverySucceededMailbox' }))
  await vi.waitFor(() => expect([all.pushes.length, delivered.pushes.length]).toEqual([2, 1]))
  const token = await logIn(relay.internalUrl, ADMIN)
  expect((await ask(relay.internalUrl, token, `/v1/status/${own('1001')}/all`)).status).toBe(200)
  expect(SHARED_KEY).not.toBe(KEY)
})

test('O6: an endpoint with a rate gets no more events per second than its rate', async () => {
  const receiver = await receiverOfTest()
  const relay = await withEndpoints([{ name: 'shop', url: receiver.url, rate: 10 }])
  const startedMs = performance.now()
  await Promise.all(Array.from({ length: 20 }, (_, parcel) => push(relay.publicUrl, at(1, { trackingIds: [String(6000 + parcel)] }))))
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(20))
  // Ten events are sent at once, and the other ten within the next second.
  expect(performance.now() - startedMs).toBeGreaterThan(500)
})
