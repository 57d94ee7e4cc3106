import { expect, onTestFinished, test } from 'vitest'
import { startWorld } from '../faults/world.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { startWebhookReceiver } from '../support/network/webhook-receiver.ts'

const MINUTES = [1, 2, 3, 4, 5, 6, 7]
const ORDERS = {
  'in their order': MINUTES,
  'in no order': [5, 2, 7, 1, 6, 3, 4],
} as const

async function start() {
  const receiver = await startWebhookReceiver()
  const world = await startWorld({
    endpoints: [{ name: 'shop', url: receiver.url, sharedKey: 'the-key-of-the-endpoint' }],
    delivery: { allowNetworks: ['127.0.0.0/8'] },
  })
  onTestFinished(async () => {
    await world.stop()
    await receiver[Symbol.asyncDispose]()
  })
  return { ...world, received: () => receiver.pushes.map(({ body }) => body.toString()) }
}

const timeOf = (minute: number) => `2026-03-01T10:0${minute}:00`

test.each(Object.entries(ORDERS))('6.6: late pushes %s, of a parcel that an app asked for, are delivered once', async (_, order) => {
  const { received, ...world } = await start()
  const trackingIds = ['700000001']
  const tracked = 'AB123456781SE'
  world.carrier.says.set(tracked, () =>
    answerBody({ trackingIds, statuses: MINUTES.toReversed().map((minute) => ({ eventTimestamp: `${timeOf(minute)}Z` })) }),
  )
  expect((await world.all(tracked)).statuses).toHaveLength(MINUTES.length)
  const late = order.map((minute) => pushBody({ eventTime: `${timeOf(minute)}.000Z`, trackingIds }))
  for (const body of [...late, ...late]) expect((await world.push(body)).status).toBe(200)
  // This push comes last. When the receiver gets it, all deliveries that were due before it have been made.
  const last = pushBody({ eventTime: '2026-03-01T10:30:00.000Z', trackingIds })
  await world.push(last)
  await expect.poll(received).toContain(last.toString())
  expect(received()).toEqual([...late, last].map(String))
  expect((await world.all(tracked)).statuses).toHaveLength(MINUTES.length + 1)
})
