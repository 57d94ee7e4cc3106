import { createServer } from 'node:http'
import { expect, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { listenInTest } from '../support/network/listen.ts'
import { expectedSignature, receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'

const OPS_KEY = 'the-key-of-the-operators-hook'

async function start(carrierUrl = NO_CARRIER) {
  const operator = await receiverOfTest()
  const sections = {
    delivery: { schedule: ['100ms'], allowNetworks: ['127.0.0.0/8'] },
    operator: { url: operator.url, sharedKey: OPS_KEY },
  }
  const relay = await relayOfTest(sections, { carrierUrl })
  return { ...relay, operator, operate: await operatorOf(relay) }
}

test('O3: operators get one signed event when an endpoint is disabled, and the API says why', async () => {
  const shop = await receiverOfTest()
  shop.answer(() => 410)
  const { operator, operate, publicUrl } = await start()
  const { body } = await operate('POST', '/relay/endpoints', { name: 'shop', url: shop.url })
  await Promise.all(Array.from({ length: 8 }, (_, parcel) => push(publicUrl, pushBody({ trackingIds: [String(5000 + parcel)] }))))
  await vi.waitFor(() => expect(operator.pushes).toHaveLength(1))
  const [told] = operator.pushes
  expect(JSON.parse(String(told?.body))).toEqual({
    event: 'endpoint_disabled',
    endpoint: { id: body.id, name: 'shop' },
    because: 'gone',
    at: expect.stringMatching(/Z$/),
  })
  expect(told?.headers['x-service-hmac-sha256']).toBe(expectedSignature(told?.body ?? Buffer.of(), OPS_KEY))
  const { endpoints } = (await operate('GET', '/relay/endpoints')).body
  expect(endpoints).toMatchObject([{ name: 'shop', disabledBecause: 'gone' }])
  // Enable the endpoint: its next 410 disables it again and causes the second event. Nothing else has caused an event.
  await operate('PATCH', `/relay/endpoints/${String(body.id)}`, { enabled: true })
  await vi.waitFor(() => expect(operator.pushes).toHaveLength(2))
})

test('operators get an event when the carrier refuses the relay’s credentials', async () => {
  const carrier = createServer((_request, response) => response.writeHead(401).end())
  const { operator, operate } = await start(`http://127.0.0.1:${await listenInTest(carrier)}`)
  for (const identifier of ['AB1001', 'AB1002']) expect((await operate('GET', `/v1/status/${identifier}/all`)).status).toBe(503)
  await vi.waitFor(() => expect(operator.pushes).toHaveLength(1))
  expect(operator.pushes.map(({ body }) => JSON.parse(String(body)).event)).toEqual(['credentials_refused'])
})

test('a 410 of the address of operator events is a problem, and a test or an order ends it', async () => {
  const { operator, operate, publicUrl } = await start()
  operator.answer(() => 410)
  await push(publicUrl, '{"not":"an event"}')
  const problems = async () => (await operate('GET', '/relay/overview')).body.problems
  const problem = {
    kind: 'operator_unheard',
    severity: 'problem',
    title: 'Operators are not told what happens: operator.url answered 410 Gone',
  }
  await expect.poll(problems).toContainEqual(expect.objectContaining(problem))
  expect((await operate('POST', '/relay/operator/test')).body).toMatchObject({ result: 'rejected', status: 410 })
  expect(await problems()).toContainEqual(expect.objectContaining(problem))

  operator.answer(() => 200)
  expect((await operate('POST', '/relay/operator/test')).body).toMatchObject({ result: 'accepted' })
  const waited = () => operator.pushes.filter(({ body }) => String(body).includes('pushes_quarantined')).length
  await expect.poll(waited).toBe(2)
  expect(await problems()).not.toContainEqual(expect.objectContaining({ kind: 'operator_unheard' }))
  expect((await operate('POST', '/relay/operator/enable')).status).toBe(204)
})
