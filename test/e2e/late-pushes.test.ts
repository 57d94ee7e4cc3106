import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorld, type World } from '../faults/world.ts'
import { answerBody, pushBody } from '../support/builders.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

const MINUTES = [1, 2, 3, 4, 5, 6, 7]
const ORDERS = {
  'in their order': MINUTES,
  'in no order': [5, 2, 7, 1, 6, 3, 4],
} as const

let receiver: WebhookReceiver
let world: World

beforeAll(async () => {
  receiver = await startWebhookReceiver()
  world = await startWorld({
    endpoints: [{ name: 'shop', url: receiver.url, sharedKey: 'the-key-of-the-endpoint' }],
    delivery: { allowNetworks: ['127.0.0.0/8'] },
  })
})

afterAll(async () => {
  await world.stop()
  await receiver[Symbol.asyncDispose]()
})

const timeOf = (minute: number) => `2026-03-01T10:0${minute}:00`

test.each(Object.entries(ORDERS))(
  '6.6: an app asks for a parcel nobody knew, then its pushes come late and %s: each is delivered once',
  async (_, order) => {
    const trackingIds = [`70000000${order[0]}`]
    const tracked = `AB12345678${order[0]}SE`
    const earlier = receiver.pushes.length
    world.carrier.says.set(tracked, () =>
      answerBody({ trackingIds, statuses: MINUTES.toReversed().map((minute) => ({ eventTimestamp: `${timeOf(minute)}Z` })) }),
    )
    expect((await world.all(tracked)).statuses).toHaveLength(MINUTES.length)
    const late = order.map((minute) => pushBody({ eventTime: `${timeOf(minute)}.000Z`, trackingIds }))
    for (const body of [...late, ...late]) expect((await world.push(body)).status).toBe(200)
    // The last that can come: whatever was owed before it has come before it.
    const last = pushBody({ eventTime: '2026-03-01T10:30:00.000Z', trackingIds })
    await world.push(last)
    const received = () => receiver.pushes.slice(earlier).map(({ body }) => body.toString())
    await expect.poll(received, { timeout: 10_000 }).toContain(last.toString())
    expect(received()).toEqual([...late, last].map(String))
    expect((await world.all(tracked)).statuses).toHaveLength(MINUTES.length + 1)
  },
)
