import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { expect, onTestFinished, test, vi } from 'vitest'
import { pushBody } from '../support/builders.ts'
import { operatorOf } from '../support/manage.ts'
import { push } from '../support/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay-of-file.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const PATIENCE = { timeout: 60_000 }
// Nothing is retried by itself while a test runs.
const SECTIONS = { delivery: { schedule: ['1h'], jitter: 0, allowNetworks: ['127.0.0.0/8'] } }
const ofFile = relayOfFile('http://127.0.0.1:9', SECTIONS)
const own = idsOfTest()

async function start() {
  const relay = ofFile()
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver[Symbol.asyncDispose]())
  const operate = await operatorOf(relay)
  const add = async (settings: object = {}) => {
    const { body } = await operate('POST', '/relay/endpoints', { name: own('shop'), url: receiver.url, ...settings })
    onTestFinished(async () => void (await operate('DELETE', `/relay/endpoints/${String(body.id)}`)))
    return body
  }
  /** The deliveries of the parcel, the oldest first. */
  const listed = async (): Promise<readonly Record<string, unknown>[]> => {
    const { deliveries } = (await operate('GET', `/relay/deliveries?parcel=${own('1001')}`)).body
    return Array.isArray(deliveries) ? deliveries.toReversed() : []
  }
  const states = async () => (await listed()).map(({ state, reason }) => [state, reason])
  const send = (minute: number) =>
    push(relay.publicUrl, pushBody({ eventTime: `2026-03-01T10:0${minute}:00.000Z`, trackingIds: [own('1001')] }))
  const skip = (id: unknown) => operate('POST', `/relay/deliveries/${String(id)}/skip`)
  return { receiver, operate, add, listed, states, send, skip }
}

test('7.4: a waiting delivery is skipped with 202, one that has ended with 409, and one that is none with 404', async () => {
  const { receiver, add, listed, states, send, skip } = await start()
  await add()
  receiver.answer((nth) => (nth === 0 ? 500 : 200))
  for (const minute of [1, 2]) await send(minute)
  await vi.waitFor(async () => {
    expect(await states()).toEqual([
      ['retrying', null],
      ['queued', null],
    ])
  }, PATIENCE)
  const [first, second] = await listed()
  expect(await skip(first?.id)).toMatchObject({ status: 202, body: { id: first?.id, state: 'dead', reason: 'skipped' } })
  const ended = [
    ['dead', 'skipped'],
    ['delivered', null],
  ]
  await vi.waitFor(async () => expect(await states()).toEqual(ended), PATIENCE)
  for (const one of [first, second]) {
    expect(await skip(one?.id)).toMatchObject({ status: 409, body: { detail: expect.stringContaining('has ended') } })
  }
  expect(await states()).toEqual(ended)
  expect([(await skip('999999999')).status, (await skip('none')).status]).toEqual([404, 404])
})

test('7.4: a delivery that is skipped while its attempt is under way stays delivered if that attempt is accepted', async () => {
  const { add, listed, states, send, skip } = await start()
  const held: ServerResponse[] = []
  const hold = (request: IncomingMessage, response: ServerResponse) => void request.resume().on('end', () => held.push(response))
  const slow = createServer(hold).listen(0, '127.0.0.1')
  await once(slow, 'listening')
  onTestFinished(() => {
    slow.closeAllConnections()
    slow.close()
  })
  const address = slow.address()
  await add({ url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/` })
  for (const minute of [1, 2]) await send(minute)
  await vi.waitFor(() => expect(held).toHaveLength(1), PATIENCE)
  const [first] = await listed()
  expect((await skip(first?.id)).status).toBe(202)
  slow.off('request', hold).on('request', (request, response) => void request.resume().on('end', () => response.end()))
  held[0]?.end()
  await vi.waitFor(async () => {
    expect(await states()).toEqual([
      ['delivered', null],
      ['delivered', null],
    ])
  }, PATIENCE)
})

test('7.4: what an endpoint does with refusals is set when it is added and later, and another value is named in a 400', async () => {
  const { operate, add } = await start()
  const added = await add({ refusals: 'skip' })
  expect(added).toMatchObject({ refusals: 'skip' })
  const path = `/relay/endpoints/${String(added.id)}`
  expect((await operate('PATCH', path, { refusals: 'wait' })).body).toMatchObject({ refusals: 'wait' })
  expect(await operate('PATCH', path, { refusals: 'drop' })).toMatchObject({
    status: 400,
    body: { detail: expect.stringMatching(/refusals.*wait.*skip/) },
  })
  expect((await operate('GET', path)).body).toMatchObject({ refusals: 'wait' })
  const other = { name: own('other'), url: 'http://127.0.0.1:9/', refusals: 1 }
  expect(await operate('POST', '/relay/endpoints', other)).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining('refusals') },
  })
})
