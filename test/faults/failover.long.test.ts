import { createServer, type ServerResponse } from 'node:http'
import { expect, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { listenInTest } from '../support/network/listen.ts'
import { withBody } from '../support/network/request-server.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, ask, logIn, push } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { startForgetful } from '../support/store/forgetful-server.ts'

/** Longer than any step takes unless it hangs. */
const LATE = { timeout: 60_000, interval: 50 }

/** Starts an endpoint that answers 200, but holds back its answers to events with this status. */
async function startHolding(status: string) {
  const texts: string[] = []
  const held: ServerResponse[] = []
  const server = createServer(
    withBody((_request, body, response) => {
      texts.push(String(body))
      if (body.includes(status)) held.push(response)
      else response.end()
    }),
  )
  const port = await listenInTest(server)
  return {
    url: `http://127.0.0.1:${port}/hooks`,
    received: (text: string) => texts.filter((one) => one.includes(text)).length,
    answer() {
      for (const response of held.splice(0)) response.end()
    },
  }
}

test('S18: an attempt whose delivery the database lost does not settle another delivery', async () => {
  await using server = await startForgetful()
  const shop = await startHolding('Lost')
  const relay = await relayOfTest({
    delivery: { allowNetworks: ['127.0.0.0/8'] },
    endpoints: [{ name: 'shop', url: shop.url, sharedKey: 'the-key-of-this-endpoint' }],
    ...(await onPostgres(server.url())),
  })
  const token = await logIn(relay.internalUrl, ADMIN)
  const pushed = async (id: string, status: string) => {
    const body = pushBody({ trackingIds: [id], status })
    await vi.waitFor(async () => expect((await push(relay.publicUrl, body)).status).toBe(200), LATE)
  }
  const lastInFeed = async () => {
    const answer = await ask(relay.internalUrl, token, '/relay/events?after=0')
    return JSON.stringify(await answer.json())
  }
  const seenAtMs = async () => {
    const { replicas } = Object(await (await ask(relay.internalUrl, token, '/relay/replicas')).json())
    return Date.parse(replicas?.[0]?.lastSeenAt)
  }
  await pushed('880001', 'Kept')
  await vi.waitFor(() => expect(shop.received('Kept')).toBe(1), LATE)
  const keptAtMs = Date.now()
  await server.keep()
  await pushed('880002', 'Lost')
  await vi.waitFor(() => expect(shop.received('Lost')).toBe(1), LATE)
  // Wait for a renewal of the lease. The database loses it too, and only by this does the relay notice: the next push fills the gap in the numbers.
  await vi.waitFor(async () => expect(await seenAtMs()).toBeGreaterThan(keptAtMs), LATE)
  expect(await lastInFeed()).toContain('Lost')

  await server.lose()
  // This delivery gets the number of the lost delivery.
  await pushed('880003', 'Another')
  shop.answer()
  await vi.waitFor(() => expect(shop.received('Another')).toBe(1), LATE)
  await vi.waitFor(async () => expect(await lastInFeed()).toContain('Another'), LATE)
  expect(await lastInFeed()).not.toContain('Lost')
})
