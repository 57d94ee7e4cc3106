import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { expectedSignature, receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

const [FIRST, SECOND, THIRD] = [7, 8, 9].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string, string]

/** With this schedule, a refused event waits far longer than a test lasts. */
const DELIVERY = { delivery: { schedule: ['10h'], jitter: 0, allowNetworks: ['127.0.0.0/8'] } }

/** Starts a receiver that verifies signatures with one key, which the test may change. */
async function receiverWithKey(first: string) {
  const receiver = await receiverOfTest()
  let key = first
  let accepted = 0
  receiver.answer((nth) => {
    const { body = Buffer.of(), headers = {} } = receiver.pushes[nth] ?? {}
    const isSigned = headers['x-service-hmac-sha256'] === expectedSignature(body, key)
    if (isSigned) accepted += 1
    return isSigned ? 204 : 401
  })
  const haveKey = (next: string) => {
    key = next
  }
  return { url: receiver.url, haveKey, accepted: () => accepted }
}

/** Pushes an event about a parcel, and waits until its refusal is recorded. */
async function pushRefused(relay: { readonly publicUrl: string; readonly internalUrl: string }, parcel: string) {
  const operate = await operatorOf(relay)
  await push(relay.publicUrl, pushBody({ trackingIds: [parcel] }))
  const retrying = async () => (await operate('GET', `/relay/deliveries?state=retrying&parcel=${parcel}`)).body.deliveries
  await expect.poll(retrying).toMatchObject([{ attemptCount: 1 }])
}

test('a refused event is sent at once when a reload or a restart changes the key in the config', async () => {
  const receiver = await receiverWithKey(SECOND)
  const withKey = (sharedKey: string) => ({ ...DELIVERY, endpoints: [{ name: 'shop', url: receiver.url, sharedKey }] })
  const relay = await relayOfTest(withKey(FIRST))
  await pushRefused(relay, '1001')
  await relay.reloadWith(withKey(SECOND))
  await expect.poll(receiver.accepted).toBe(1)

  receiver.haveKey(THIRD)
  await pushRefused(relay, '1002')
  await relay.stop()
  await relayOfTest(withKey(THIRD), { folder: relay.folder })
  await expect.poll(receiver.accepted).toBe(2)
})

test('events that a managed endpoint refused are sent at once when its key or URL is changed', async () => {
  const receiver = await receiverWithKey(SECOND)
  const relay = await relayOfTest(DELIVERY)
  const operate = await operatorOf(relay)
  const { body } = await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url, sharedKey: FIRST })
  const path = `/relay/endpoints/${String(body.id)}`
  await pushRefused(relay, '1001')
  expect(await operate('POST', `${path}/rotate`, { sharedKey: SECOND, at: 'now' })).toMatchObject({ status: 200 })
  await expect.poll(receiver.accepted).toBe(1)

  receiver.haveKey(THIRD)
  await pushRefused(relay, '1002')
  const other = await receiverWithKey(SECOND)
  expect(await operate('PATCH', path, { url: other.url })).toMatchObject({ status: 200 })
  await expect.poll(other.accepted).toBe(1)
})
