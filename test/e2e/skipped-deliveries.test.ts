import { expect, onTestFinished, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startHangingReceiver } from '../support/network/hanging-receiver.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { idsOfTest, relayOfFile } from '../support/relay/relay-of-file.ts'

const PATIENCE = { timeout: 60_000 }
// No retry is due while a test runs.
const SECTIONS = { delivery: { schedule: ['1h'], jitter: 0, allowNetworks: ['127.0.0.0/8'] } }
const ofFile = relayOfFile('http://127.0.0.1:9', SECTIONS)
const own = idsOfTest()

async function start() {
  const relay = ofFile()
  const receiver = await receiverOfTest()
  const operate = await operatorOf(relay)
  const add = async (settings: object = {}) => {
    const { body } = await operate('POST', '/relay/endpoints', { name: own('shop'), url: receiver.url, ...settings })
    onTestFinished(async () => void (await operate('DELETE', `/relay/endpoints/${String(body.id)}`)))
    return body
  }
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

test('7.4: a skip is a 202 if the delivery waits, a 409 if it has ended, a 404 if it is unknown', async () => {
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

test.each([
  [200, ['delivered', null]],
  [500, ['dead', 'skipped']],
] as const)('7.4: a delivery skipped during an attempt keeps its state until the attempt gets a %i', async (status, end) => {
  const { add, listed, states, send, skip } = await start()
  const slow = await startHangingReceiver()
  await add({ url: slow.url })
  for (const minute of [1, 2]) await send(minute)
  await vi.waitFor(() => expect(slow.underWay()).toBe(1), PATIENCE)
  const [first] = await listed()
  for (let nth = 0; nth < 2; nth++) {
    const marked = { id: first?.id, state: 'queued', reason: 'skipped', nextAttemptAt: null, settledAt: null }
    expect(await skip(first?.id)).toMatchObject({ status: 202, body: marked })
  }
  expect(await states()).toEqual([
    ['queued', 'skipped'],
    ['queued', null],
  ])
  expect(slow.underWay()).toBe(1)
  slow.answer(status)
  await vi.waitFor(() => expect(slow.underWay()).toBe(1), PATIENCE)
  expect(await states()).toEqual([end, ['queued', null]])
  expect((await skip(first?.id)).status).toBe(409)
  slow.answer(200)
  await vi.waitFor(async () => expect(await states()).toEqual([end, ['delivered', null]]), PATIENCE)
})

test('7.4: a delivery of a disabled endpoint is skipped at once, and the others still wait', async () => {
  const { receiver, operate, add, listed, states, send, skip } = await start()
  const { id } = await add({ enabled: false })
  for (const minute of [1, 2]) await send(minute)
  await vi.waitFor(async () => expect(await listed()).toHaveLength(2), PATIENCE)
  expect(await skip((await listed())[0]?.id)).toMatchObject({ status: 202, body: { state: 'dead', reason: 'skipped' } })
  expect(await states()).toEqual([
    ['dead', 'skipped'],
    ['held', null],
  ])
  await operate('PATCH', `/relay/endpoints/${String(id)}`, { enabled: true })
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(1), PATIENCE)
})

test('7.4: the setting for refused events is checked when an endpoint is added and changed', async () => {
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
