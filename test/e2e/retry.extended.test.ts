import { expect, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { ADMIN, push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

/** Starts an endpoint that refuses everything, with retries that come long after the end of a test. */
async function start() {
  const receiver = await receiverOfTest()
  receiver.answer(() => 500)
  const relay = await relayOfTest({ delivery: { schedule: ['10h'], allowNetworks: ['127.0.0.0/8'] } })
  const operate = await operatorOf(relay)
  const { body } = await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })
  const path = `/relay/endpoints/${String(body.id)}`
  const listed = async (state: string) => {
    const { deliveries } = (await operate('GET', `/relay/deliveries?state=${state}`)).body
    return Array.isArray(deliveries) ? deliveries.map(({ id }) => String(id)) : []
  }
  const pushParcels = async (...parcels: readonly number[]) => {
    for (const parcel of parcels) await push(relay.publicUrl, pushBody({ trackingIds: [String(parcel)] }))
  }
  const retry = (id: string) => operate('POST', `/relay/deliveries/${id}/retry`)
  return { operate, path, receiver, publicUrl: relay.publicUrl, listed, pushParcels, retry }
}

test('retry sends waiting deliveries to a repaired receiver at once, and replay points to retry', async () => {
  const { operate, path, receiver, listed, pushParcels } = await start()
  await pushParcels(1001, 1002)
  await vi.waitFor(async () => expect(await listed('retrying')).toHaveLength(2))
  receiver.answer(() => 200)
  const [one] = await listed('retrying')
  const replayed = await operate('POST', `/relay/deliveries/${one}/replay`)
  expect(replayed).toMatchObject({ status: 409, body: { detail: expect.stringContaining('/retry') } })
  expect(await operate('POST', `${path}/retry`)).toMatchObject({ status: 202, body: { name: 'shop', state: 'active' } })
  await vi.waitFor(async () => expect(await listed('delivered')).toHaveLength(2))
})

test('one delivery is retried at once while others wait, or the answer says why not', async () => {
  const { operate, path, receiver, publicUrl, listed, pushParcels, retry } = await start()
  await pushParcels(1001, 1002)
  await vi.waitFor(async () => expect(await listed('retrying')).toHaveLength(2))
  receiver.answer(() => 200)
  const [one = ''] = await listed('retrying')
  expect(await retry(one)).toMatchObject({ status: 202, body: { id: one } })
  await vi.waitFor(async () => expect(await listed('delivered')).toEqual([one]))
  const [other = ''] = await listed('retrying')
  await push(publicUrl, pushBody({ trackingIds: ['1001'], eventTime: '2026-03-01T11:00:00.000Z' }))
  await push(publicUrl, pushBody({ trackingIds: ['1002'], eventTime: '2026-03-01T11:00:00.000Z' }))
  await vi.waitFor(async () => expect(await listed('delivered')).toHaveLength(2))
  const [behind = ''] = await listed('queued')
  const refusals = [await retry(behind), await retry(one)]
  await operate('PATCH', path, { enabled: false })
  refusals.push(await retry(other), await operate('POST', `${path}/retry`))
  expect(refusals.map(({ status, body }) => [status, body.type])).toEqual(
    Array.from({ length: 4 }, () => [409, 'urn:parcel-relay:error:not_retryable']),
  )
  const said = ['an earlier delivery', '/replay', 'is disabled', 'is disabled']
  expect(refusals.map(({ body }) => body.detail)).toEqual(said.map((part) => expect.stringContaining(part)))
  for (const unknown of ['/relay/deliveries/99/retry', '/relay/endpoints/99/retry'])
    expect(await operate('POST', unknown)).toMatchObject({ status: 404 })
})

test('a failing endpoint shows when it is tried next, and a disabled endpoint does not', async () => {
  const { operate, path, receiver, listed, pushParcels } = await start()
  const view = async () => (await operate('GET', path)).body
  expect(await view()).toMatchObject({ state: 'active', nextProbeAt: null })
  await pushParcels(1001, 1002, 1003, 1004, 1005)
  await vi.waitFor(async () => expect(await view()).toMatchObject({ state: 'failing', disabledBecause: null }))
  expect(Date.parse(String((await view()).nextProbeAt))).toBeGreaterThan(Date.parse(String((await view()).failingSince)))
  await operate('PATCH', path, { enabled: false })
  expect(await view()).toMatchObject({ state: 'disabled', disabledBecause: 'operator', disabledBy: ADMIN.username, nextProbeAt: null })
  receiver.answer(() => 200)
  await operate('PATCH', path, { enabled: true })
  await vi.waitFor(async () => expect(await listed('delivered')).toHaveLength(5))
  expect(await view()).toMatchObject({ state: 'active', failingSince: null, disabledSince: null, disabledBy: null, waiting: 0 })
})

test('equal failures of an endpoint are grouped, with their count and last answer', async () => {
  const { operate, path, pushParcels } = await start()
  await pushParcels(1001, 1002, 1003)
  const failures = async () => {
    const { body } = await operate('GET', path)
    return Array.isArray(body.failures) ? body.failures : []
  }
  await vi.waitFor(async () => expect((await failures())[0]?.count).toBeGreaterThanOrEqual(3))
  const [group, ...others] = await failures()
  expect(others).toEqual([])
  expect(group).toMatchObject({ status: expect.any(Number), reason: null, answerStart: expect.any(String) })
  expect(Date.parse(group.firstAt)).toBeLessThanOrEqual(Date.parse(group.lastAt))
  expect((await operate('GET', `/relay/deliveries/${group.delivery}`)).body).toMatchObject({ lastAttempt: { status: group.status } })
})
