import { expect, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { startHangingReceiver } from '../support/network/hanging-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

const PATIENCE = { timeout: 60_000, interval: 50 }
const QUEUED = ['queued', null]
const MARKED = ['queued', 'skipped']

/** Starts two replicas, each of which delivers to one of two endpoints. */
async function start() {
  // No retry is due while a test runs.
  const delivery = { schedule: ['1h'], jitter: 0, allowNetworks: ['127.0.0.0/8'] }
  const shared = { ...(await onPostgres()), delivery }
  const open = async () => {
    const relay = await relayOfTest(shared)
    return { ...relay, operate: await operatorOf(relay) }
  }
  const [one, other] = [await open(), await open()]
  const receivers = [await startHangingReceiver(), await startHangingReceiver()]
  const ids: string[] = []
  for (const [nth, { url }] of receivers.entries()) {
    ids.push(String((await one.operate('POST', '/relay/endpoints', { name: `shop-${nth}`, url })).body.id))
  }
  const holders = async () => {
    const { replicas } = (await one.operate('GET', '/relay/replicas')).body
    const held = Array.isArray(replicas) ? replicas.map(({ roles }) => (Array.isArray(roles) ? roles : [])) : []
    return ids.map((id) => held.findIndex((roles) => roles.includes(`dispatcher/${id}`)))
  }
  await vi.waitFor(async () => expect(new Set(await holders())).toEqual(new Set([0, 1])), PATIENCE)
  /** Lists the deliveries of an endpoint as a replica shows them, oldest first. */
  const listed = async (at: typeof one, endpoint: number): Promise<readonly Record<string, unknown>[]> => {
    const { deliveries } = (await at.operate('GET', `/relay/deliveries?endpoint=${ids[endpoint]}`)).body
    return Array.isArray(deliveries) ? deliveries.toReversed() : []
  }
  const states = async (endpoint: number) => (await listed(other, endpoint)).map(({ state, reason }) => [state, reason])
  const skip = async (endpoint: number, nth: number) => {
    const delivery = (await listed(one, endpoint))[nth]
    return await one.operate('POST', `/relay/deliveries/${String(delivery?.id)}/skip`)
  }
  for (const minute of [1, 2, 3]) {
    expect((await push(one.publicUrl, pushBody({ eventTime: `2026-03-01T10:0${minute}:00.000Z` }))).status).toBe(200)
  }
  await vi.waitFor(() => expect(receivers.map(({ underWay }) => underWay())).toEqual([1, 1]), PATIENCE)
  return { receivers, states, skip }
}

test('7.4: a delivery skipped through the other replica ends when its attempt ends', async () => {
  const { receivers, states, skip } = await start()
  for (const endpoint of [0, 1]) {
    for (let nth = 0; nth < 2; nth++) {
      expect(await skip(endpoint, 0)).toMatchObject({ status: 202, body: { state: 'queued', reason: 'skipped', settledAt: null } })
    }
    // The second delivery has no running attempt, so the replica that delivers to the endpoint ends it.
    expect((await skip(endpoint, 1)).status).toBe(202)
    await vi.waitFor(async () => expect(await states(endpoint)).toEqual([MARKED, ['dead', 'skipped'], QUEUED]), PATIENCE)
    expect(receivers[endpoint]?.underWay()).toBe(1)
  }
  for (const [endpoint, status, end] of [
    [0, 500, ['dead', 'skipped']],
    [1, 200, ['delivered', null]],
  ] as const) {
    receivers[endpoint]?.answer(status)
    await vi.waitFor(() => expect(receivers[endpoint]?.underWay()).toBe(1), PATIENCE)
    expect(await states(endpoint)).toEqual([end, ['dead', 'skipped'], QUEUED])
    for (const nth of [0, 1]) expect((await skip(endpoint, nth)).status).toBe(409)
    receivers[endpoint]?.answer(200)
    await vi.waitFor(async () => expect((await states(endpoint))[2]).toEqual(['delivered', null]), PATIENCE)
  }
}, 240_000)

test('7.4: a delivery of an endpoint that no config names is skipped at once', async () => {
  const shared = await onPostgres()
  const open = async (endpoints: readonly object[]) => {
    const relay = await relayOfTest({ ...shared, endpoints })
    return { ...relay, operate: await operatorOf(relay) }
  }
  const before = await open([{ name: 'shop', url: 'http://127.0.0.1:9/', sharedKey: 'the-key-of-this-endpoint' }])
  await before.stop()
  const { operate, publicUrl } = await open([])
  await push(publicUrl, pushBody())
  const held = async (): Promise<unknown> => {
    const { deliveries } = (await operate('GET', '/relay/deliveries?state=held')).body
    return Array.isArray(deliveries) ? deliveries[0]?.id : undefined
  }
  await vi.waitFor(async () => expect(await held()).toBeDefined(), PATIENCE)
  const skipped = await operate('POST', `/relay/deliveries/${String(await held())}/skip`)
  expect(skipped).toMatchObject({ status: 202, body: { state: 'dead', reason: 'skipped' } })
}, 120_000)
