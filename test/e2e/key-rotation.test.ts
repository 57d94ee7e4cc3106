import { Webhook } from 'standardwebhooks'
import { expect, onTestFinished, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { expectedSignature, receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'

const BEFORE = Buffer.alloc(32, 7).toString('base64')
const AFTER = Buffer.alloc(32, 8).toString('base64')

const ofFile = relayOfFile('http://127.0.0.1:9', { delivery: { allowNetworks: ['127.0.0.0/8'] } })
const own = idsOfTest()

const at = (minute: number) => pushBody({ eventTime: `2026-03-01T10:0${minute}:00.000Z`, trackingIds: [own('1001')] })

/** Adds an endpoint whose receiver checks `x-service-hmac-sha256` with a single key, which `haveKey` sets. */
async function start(settings: object = {}) {
  const receiver = await receiverOfTest()
  let key = BEFORE
  receiver.answer((nth) => {
    const { body = Buffer.of(), headers = {} } = receiver.pushes[nth] ?? {}
    return headers['x-service-hmac-sha256'] === expectedSignature(body, key) ? 204 : 401
  })
  const relay = ofFile()
  const operate = await operatorOf(relay)
  const { body } = await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url, sharedKey: BEFORE, ...settings })
  const id = String(body.id)
  const path = `/relay/endpoints/${id}`
  onTestFinished(async () => void (await operate('DELETE', path)))
  const rotate = (order?: object) => operate('POST', `${path}/rotate`, order)
  const view = async () => (await operate('GET', path)).body
  const send = (body: Buffer) => push(relay.publicUrl, body)
  /** Pushes an event, and waits until `count` events are delivered, each at its first attempt. */
  const deliver = async (body: Buffer, count: number) => {
    await send(body)
    await vi.waitFor(async () => {
      const { deliveries } = (await operate('GET', `/relay/deliveries?endpoint=${id}&state=delivered`)).body
      expect(deliveries).toMatchObject(Array.from({ length: count }, () => ({ attemptCount: 1 })))
    })
  }
  const haveKey = (next: string) => {
    key = next
  }
  return { ...relay, operate, receiver, id, path, rotate, view, send, deliver, haveKey }
}

test('O9: a receiver that checks only one header loses nothing while the key is replaced', async () => {
  const { receiver, rotate, view, deliver, haveKey } = await start()
  const { status, body } = await rotate({ sharedKey: AFTER })
  expect([status, body.sharedKey]).toEqual([200, AFTER])
  expect(Date.parse(String(body.nextKeyFrom)) - Date.now()).toBeGreaterThan(23 * 3_600_000)
  await deliver(at(1), 1)
  expect(receiver.pushes.at(-1)?.headers).toMatchObject({
    'x-service-hmac-sha256': expectedSignature(at(1), BEFORE),
    'x-service-hmac-sha256-next': expectedSignature(at(1), AFTER),
  })
  expect(await view()).toMatchObject({ nextKeyFrom: body.nextKeyFrom })
  // The receiver switches to the new key without telling the relay.
  haveKey(AFTER)
  await deliver(at(2), 2)
  expect(receiver.pushes).toHaveLength(3)
  await vi.waitFor(async () => expect(await view()).toMatchObject({ nextKeyFrom: null }))
  await deliver(at(3), 3)
  expect(receiver.pushes).toHaveLength(4)
  expect(receiver.pushes.at(-1)?.headers['x-service-hmac-sha256']).toBe(expectedSignature(at(3), AFTER))
  expect(receiver.pushes.at(-1)?.headers).not.toHaveProperty('x-service-hmac-sha256-next')
})

test('O9: after a PATCH of the key, a Standard Webhooks push has both signatures', async () => {
  const { operate, receiver, path, deliver } = await start({ signature: 'standard-webhooks' })
  const changed = await operate('PATCH', path, { sharedKey: AFTER })
  expect(changed.body).toMatchObject({ nextKeyFrom: expect.any(String) })
  await deliver(at(1), 1)
  for (const key of [BEFORE, AFTER])
    expect(new Webhook(key).verify(at(1), { ...receiver.pushes[0]?.headers })).toMatchObject({ status: 'TerminalArrived' })
})

test('O9: if a receiver refuses both keys, one attempt sends the event once with each signature', async () => {
  const { operate, receiver, id, rotate, view, send, haveKey } = await start()
  haveKey('neither of the two')
  const { nextKeyFrom } = (await rotate({ sharedKey: AFTER })).body
  await send(at(1))
  await vi.waitFor(async () => {
    const { deliveries } = (await operate('GET', `/relay/deliveries?endpoint=${id}`)).body
    expect(deliveries).toMatchObject([{ state: 'retrying', attemptCount: 1 }])
  })
  const [before, after] = [expectedSignature(at(1), BEFORE), expectedSignature(at(1), AFTER)]
  expect(receiver.pushes.map(({ headers }) => [headers['x-service-hmac-sha256'], headers['x-service-hmac-sha256-next']])).toEqual([
    [before, after],
    [after, before],
  ])
  expect(await view()).toMatchObject({ nextKeyFrom })
})

test('O9: rotate shows a new key once, and with "at": "now" ends the overlap of the two keys', async () => {
  const { operate, receiver, path, rotate, deliver, haveKey } = await start()
  expect(await rotate({ at: 'now' })).toMatchObject({ status: 409, body: { type: 'urn:parcel-relay:error:not_rotating' } })
  expect(await rotate({ at: 'tomorrow' })).toMatchObject({ status: 400, body: { detail: expect.stringContaining('"now"') } })
  await deliver(at(1), 1)
  const first = await rotate()
  const made = String((await rotate()).body.sharedKey)
  expect(Buffer.from(made, 'base64')).toHaveLength(32)
  expect(new Set([BEFORE, made, first.body.sharedKey]).size).toBe(3)
  const ended = await rotate({ at: 'now' })
  expect(ended.body).toMatchObject({ nextKeyFrom: null })
  expect([ended.text.includes(made), (await operate('GET', path)).text.includes(made)]).toEqual([false, false])
  haveKey(made)
  await deliver(at(2), 2)
  expect(receiver.pushes.at(-1)?.headers['x-service-hmac-sha256']).toBe(expectedSignature(at(2), made))
  haveKey(String((await rotate({ at: 'now', sharedKey: null })).body.sharedKey))
  await deliver(at(3), 3)
  expect(receiver.pushes).toHaveLength(3)
})
