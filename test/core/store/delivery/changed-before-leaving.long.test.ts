import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { DeliverySigner } from '../../../../src/core/domain/delivery/delivery-request.ts'
import type { KeyChange } from '../../../../src/core/domain/delivery/endpoint-state.ts'
import { createDispatcher } from '../../../../src/core/flow/delivery/dispatching/dispatcher.ts'
import { createEndpointSigners } from '../../../../src/core/flow/delivery/endpoint-vault.ts'
import type { Vault } from '../../../../src/core/flow/ports.ts'
import type { Engine } from '../../../../src/core/store/contract.ts'
import { definedHmac } from '../../../support/delivery/independent-hmac.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../../support/history/builders.ts'
import { allEndpoints } from '../../../support/relay/held-endpoints.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { engines } from '../../../support/store/engines.ts'
import { openStore } from '../../../support/store/write-side.ts'
import { closeOpened, openHttp } from '../../carrier/carrier-double.ts'
import { openSender } from '../../outbound/sender-world.ts'

const BODY = pushBody({})
const openVault: Vault = { seal: async (key) => key, open: async (sealed) => sealed, isCurrent: () => true }
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

afterEach(closeOpened)

interface Arrived {
  readonly path: string | undefined
  readonly signature: unknown
}

/** Opens a dispatcher with the real sender. Its connections wait until the test allows them. */
async function openRelay(engine: Engine) {
  const store = await openStore(NOON, engine)
  const arrived: Arrived[] = []
  const server = new URL(
    await openHttp((request, response) => {
      arrived.push({ path: request.url, signature: request.headers['x-service-hmac-sha256'] })
      request.resume().on('end', () => response.end())
    }),
  )
  const connecting: (() => void)[] = []
  const { sender, ...world } = openSender({
    lookup: () => new Promise((resolve) => connecting.push(() => resolve(['127.0.0.1']))),
  })
  onTestFinished(() => world[Symbol.asyncDispose]())
  const urlOf = (path: string) => `http://shop.internal:${server.port}${path}`
  const { id } = await addEndpoint(store.writes, NOON, { url: urlOf('/first') })
  let posts = 0
  let ends = 0
  const relay = createDispatcher(
    {
      held: allEndpoints,
      write: store.writes,
      sender: {
        post(request, onEnd) {
          posts += 1
          sender.post(request, (result) => {
            ends += 1
            onEnd(result)
          })
        },
      },
      signerOf: createEndpointSigners({
        vault: openVault,
        configured: () => undefined,
        userAgent: 'parcel-relay/test',
        made: new Map<string, DeliverySigner>(),
        log,
      }),
      routeOf: () => ({}),
      clock: { now: store.now, monotonic: store.now },
      random: () => 0.5,
      meter: { deliveryAttempted: () => {} },
      log,
      wake: () => {},
      yieldToIo: async () => {},
    },
    { relayId: 'relay', claimsMax: 100, perEndpoint: () => 4, claimsPerAttempt: 3 },
  )
  const look = async () => {
    relay.look()
    await relay.pass()
  }
  const connect = () => {
    for (const go of connecting.splice(0)) go()
  }
  const delivery = async () =>
    (await store.reads.listDeliveries({ endpointId: id, parcelId: null, state: null, before: null, limit: 1 })).deliveries[0]
  return {
    arrived,
    relay,
    look,
    urlOf,
    posts: () => posts,
    skip: async () => await store.writes.skipDelivery({ deliveryId: (await delivery())?.deliveryId ?? 0 }),
    retry: async () => await store.writes.retryDelivery({ deliveryId: (await delivery())?.deliveryId ?? 0, nowMs: store.now() }),
    remove: () => store.writes.removeEndpoint({ id, nowMs: store.now() }),
    change: (change: { url?: string; enabled?: boolean }, key: KeyChange | null = null) =>
      store.writes.changeEndpoint({ id, change, key, nowMs: store.now() }),
    /** Queues an event whose attempt waits for its connection. */
    async begin(): Promise<void> {
      await store.push({})
      await look()
      await expect.poll(() => connecting.length, { timeout: 60_000 }).toBe(1)
    },
    connect,
    /** Allows the connection, and waits until the request has ended. */
    async connectToTheEnd(): Promise<void> {
      connect()
      await expect.poll(() => ends, { timeout: 60_000 }).toBe(1)
    },
    delivery,
    /** Runs rounds until the delivery has this state. */
    async untilState(state: string): Promise<void> {
      const round = async () => {
        store.pass(10)
        await look()
        connect()
        return (await delivery())?.state
      }
      await expect.poll(round, { timeout: 60_000 }).toBe(state)
    },
  }
}

const ROTATED = 'another key of the endpoint'

describe.each(engines)('O16: an attempt that waits for its connection, on $name,', (engine) => {
  test('is sent if nothing has changed, even if the dispatcher reviews the order meanwhile', async () => {
    const { begin, relay, connect, untilState, arrived, posts } = await openRelay(engine)
    await begin()
    relay.review()
    connect()
    await untilState('delivered')
    expect([arrived.length, posts()]).toEqual([1, 1])
  })

  test.each(['before', 'after'] as const)(
    'sends nothing if its endpoint is disabled (connected %s the dispatcher knows that)',
    async (order) => {
      const { begin, change, relay, connectToTheEnd, look, untilState, arrived, delivery } = await openRelay(engine)
      await begin()
      await change({ enabled: false })
      relay.reviewEndpoints()
      if (order === 'before') await connectToTheEnd()
      await look()
      await connectToTheEnd()
      await untilState('held')
      expect(arrived).toEqual([])
      await change({ enabled: true })
      relay.reviewEndpoints()
      await untilState('delivered')
      expect(arrived).toHaveLength(1)
      expect((await delivery())?.attempts).toBe(1)
    },
  )

  test('sends nothing if its endpoint was removed', async () => {
    const { begin, remove, relay, connectToTheEnd, look, untilState, arrived } = await openRelay(engine)
    await begin()
    await remove()
    relay.reviewEndpoints()
    await look()
    await connectToTheEnd()
    await untilState('cancelled')
    expect(arrived).toEqual([])
  })

  test.each(['before', 'after'] as const)(
    'starts over with the new URL, and counts once (connected %s the dispatcher knows it)',
    async (order) => {
      const { begin, change, urlOf, relay, connectToTheEnd, look, untilState, arrived, delivery, posts } = await openRelay(engine)
      await begin()
      await change({ url: urlOf('/second') })
      relay.reviewEndpoints()
      if (order === 'before') await connectToTheEnd()
      await look()
      if (order === 'after') await connectToTheEnd()
      await untilState('delivered')
      expect(arrived.map(({ path }) => path)).toEqual(['/second'])
      expect([posts(), (await delivery())?.attempts]).toEqual([2, 1])
    },
  )

  test('starts over with the new key, and counts once', async () => {
    const { begin, change, relay, look, connect, untilState, arrived, delivery } = await openRelay(engine)
    await begin()
    await change({}, { kind: 'replace', sealed: ROTATED })
    relay.reviewEndpoints()
    await look()
    connect()
    await untilState('delivered')
    expect(arrived.map(({ signature }) => signature)).toEqual([definedHmac(BODY, ROTATED)])
    expect((await delivery())?.attempts).toBe(1)
  })

  test.each(['before', 'after'] as const)(
    'does not start over with a new key if it is skipped (connected %s the dispatcher knows it)',
    async (order) => {
      const { begin, change, skip, relay, look, connectToTheEnd, untilState, arrived, delivery, posts } = await openRelay(engine)
      await begin()
      await change({}, { kind: 'replace', sealed: ROTATED })
      await skip()
      relay.reviewEndpoints()
      if (order === 'before') await connectToTheEnd()
      await look()
      if (order === 'after') await connectToTheEnd()
      await untilState('dead')
      expect([arrived, posts(), await delivery()]).toMatchObject([[], 1, { attempts: 0, reason: 'skipped' }])
    },
  )

  test('is sent if it is skipped and then retried', async () => {
    const { begin, change, skip, retry, relay, look, connect, untilState, arrived } = await openRelay(engine)
    await begin()
    await skip()
    relay.review()
    await look()
    await retry()
    await change({}, { kind: 'replace', sealed: ROTATED })
    relay.reviewEndpoints()
    await look()
    connect()
    await untilState('delivered')
    expect(arrived.map(({ signature }) => signature)).toEqual([definedHmac(BODY, ROTATED)])
  })
})
