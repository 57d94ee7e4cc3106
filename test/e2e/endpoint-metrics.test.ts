import { expect, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { fetchDocumented } from '../support/portal/api-document.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'

test('the metrics count each endpoint’s waiting and dead deliveries and how attempts ended', async () => {
  const receiver = await receiverOfTest()
  receiver.answer(() => 500)
  const relay = await relayOfTest({ delivery: { schedule: ['10h'], allowNetworks: ['127.0.0.0/8'] } })
  const operate = await operatorOf(relay)
  const { body } = await operate('POST', '/relay/endpoints', { name: 'shop', url: receiver.url })
  for (const parcel of [1001, 1002, 1003]) await push(relay.publicUrl, pushBody({ trackingIds: [String(parcel)] }))
  const metricsText = async () => await (await fetchDocumented(`${relay.internalUrl}/metrics`)).text()
  const readMetric = async (name: string, labels = 'endpoint="shop"') =>
    Number(new RegExp(`^${name}\\{${labels}\\} (.*)$`, 'm').exec(await metricsText())?.[1])
  await vi.waitFor(async () => expect(await readMetric('relay_delivery_attempts_total', 'endpoint="shop",outcome="rejected"')).toBe(3))
  expect(await readMetric('relay_endpoint_waiting')).toBe(3)
  expect(await readMetric('relay_endpoint_oldest_waiting_seconds')).toBeGreaterThan(0)
  expect([await readMetric('relay_endpoint_dead'), await readMetric('relay_endpoint_disabled')]).toEqual([0, 0])
  await operate('PATCH', `/relay/endpoints/${String(body.id)}`, { enabled: false })
  expect(await readMetric('relay_endpoint_disabled')).toBe(1)
  await operate('DELETE', `/relay/endpoints/${String(body.id)}`)
  expect(await metricsText()).not.toContain('relay_endpoint_waiting{')
  expect(relay.lines.filter(({ message }) => message === 'attempts to deliver to an endpoint failed').length).toBe(1)
})
