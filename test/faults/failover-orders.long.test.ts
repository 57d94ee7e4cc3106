import { expect, onTestFinished, test, vi } from 'vitest'
import { parseWebhookEvent } from '../../src/core/domain/ingest/parse-push.ts'
import { closeOpened, json, openCarrier } from '../core/carrier/carrier-double.ts'
import { createFeedConsumer, replayFeed } from '../support/delivery/feed-consumer.ts'
import { answerBody, pushBody } from '../support/history/builders.ts'
import { answers, recordAll } from '../support/history/model.ts'
import { openTcpProxy } from '../support/network/tcp-proxy.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, logIn, push, type startTestRelay } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { byForm } from '../support/runner/long-form.ts'
import { drawWith, seeded } from '../support/runner/seeded.ts'
import { startForgetful } from '../support/store/forgetful-server.ts'
import { storedNumber } from '../support/store/stored-rows.ts'

const SEEDS = byForm(1, 4, 40)
const LOSSES = byForm(1, 2, 3)
/** Longer than any step takes unless it hangs. */
const LATE = { timeout: 60_000, interval: 50 }
/** Parcels that pushes name. */
const IDS = byForm(['1001', '1002', '1003'], ['1001', '1002', '1003', '1004', '1005', '1006'])
/** Parcels that only the carrier knows. */
const NUMBERS = byForm(['AB900000001SE'], ['AB900000001SE', 'AB900000002SE'])
const LANGUAGES = ['en', 'sv'] as const

type Relay = Awaited<ReturnType<typeof startTestRelay>> & { readonly token: string }

/** Repeats a request while its answer is a 503. After a failover, a relay may answer 503 for a while. */
async function call({ internalUrl, token }: Relay, path: string, { method = 'GET', body }: { method?: string; body?: object } = {}) {
  return await vi.waitFor(async () => {
    const answer = await fetch(`${internalUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    expect(answer.status).not.toBe(503)
    return { status: answer.status, etag: answer.headers.get('etag'), text: await answer.text() }
  }, LATE)
}

/** Starts a database server. The test can cut its connections to the replicas. */
async function startServer() {
  const server = await startForgetful()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const proxy = await openTcpProxy(server.port)
  onTestFinished(() => proxy[Symbol.asyncDispose]())
  const through = new URL(server.url())
  through.port = String(proxy.port)
  return { server, proxy, through: through.href }
}

async function openWorld(seed: number) {
  const random = seeded(seed)
  const { below, pick } = drawWith(random)
  const carrier = await openCarrier({
    status: ({ url = '' }, response) => {
      const nth = NUMBERS.findIndex((number) => url.includes(number))
      const text = `${url.includes('sv') ? 'sv' : 'en'} ${nth}`
      return nth < 0 ? json(response, 404, '{}') : json(response, 200, String(answerBody({ trackingIds: [`900${nth}`], text })))
    },
  })
  onTestFinished(closeOpened)
  const receiver = await receiverOfTest()
  const ever: Buffer[] = []
  /** The pushes that were acknowledged and not lost. */
  const kept: Buffer[] = []

  const start = async (url: string): Promise<Relay> => {
    const sections = {
      poll: { cron: '0 0 1 1 *' },
      delivery: { allowNetworks: ['127.0.0.0/8'], schedule: ['1s', '1s', '1s'] },
      endpoints: [{ name: 'shop', url: receiver.url, sharedKey: 'the-key-of-this-endpoint' }],
      ...(await onPostgres(url)),
    }
    const relay = await relayOfTest(sections, { carrierUrl: carrier.url })
    return { ...relay, token: await logIn(relay.internalUrl, ADMIN) }
  }
  const newBody = () => {
    const text = below(3) === 0 ? pick(['Arrived', 'Framme']) : `Text ${ever.length}`
    return pushBody({
      status: pick(['Created', 'TerminalArrived', 'DeliveryStarted', 'Delivered']),
      eventTime: new Date(Date.now() - 3_600_000 + below(5) * 1000).toISOString(),
      location: pick(['Lund', 'Umeå', '']),
      // A push with two ids joins two parcels.
      trackingIds: [...new Set(below(8) === 0 ? [pick(IDS), pick(IDS)] : [pick(IDS)])],
      texts: { [pick(LANGUAGES)]: text },
    })
  }
  const pushAt = async ({ publicUrl }: Relay) => {
    const body = below(6) === 0 && ever.length > 0 ? pick(ever) : newBody()
    ever.push(body)
    await vi.waitFor(async () => expect((await push(publicUrl, body)).status).toBe(200), LATE)
    kept.push(body)
  }
  const step = async (relay: Relay) => {
    const [kind, id] = [random(), pick([...IDS, ...NUMBERS])]
    if (kind < 0.6) await pushAt(relay)
    else if (kind < 0.8) await call(relay, `/v1/status/${id}/${pick(['all', 'latest'])}?language=${pick(LANGUAGES)}`)
    else if (kind < 0.88) await call(relay, `/relay/events?after=${below(5)}&limit=${1 + below(20)}`)
    else if (kind < 0.92) {
      const body = { name: `made ${below(1_000_000)}`, url: receiver.url }
      await call(relay, '/relay/endpoints', { method: 'POST', body })
    } else await call(relay, `/relay/parcels/${id}/watch`, { method: 'PUT' })
  }
  return {
    below,
    pick,
    kept,
    receiver,
    start,
    async steps(relays: readonly Relay[], count: number) {
      for (let done = 0; done < count; done++) await step(pick(relays))
    },
  }
}

const LISTS = ['/relay/endpoints', '/relay/deliveries?limit=200', '/relay/parcels?limit=100', '/relay/inbox?limit=200']
const paths = [
  ...[...IDS, ...NUMBERS].flatMap((id) => [
    ...LANGUAGES.flatMap((language) => ['all', 'latest'].map((kind) => `/v1/status/${id}/${kind}?language=${language}`)),
    `/relay/parcels/${id}`,
  ]),
  ...LISTS,
]

/** Returns all answers of a relay by path, without members that differ between relays. */
async function allTold(relay: Relay): Promise<Readonly<Record<string, unknown>>> {
  const told: [string, unknown][] = []
  for (const path of paths) {
    const { status, etag, text } = await call(relay, path)
    told.push([path, [status, etag, text.replaceAll(/"(?:instance|carrierRefusedItAt)":"[^"]*"/g, '')]])
  }
  const consumer = createFeedConsumer()
  await replayFeed(consumer, relay.internalUrl, relay.token, 7)
  for (const id of IDS) told.push([`feed of ${id}`, consumer.all(id, LANGUAGES)])
  return Object.fromEntries(told)
}

/** Returns the right answers about parcels that only pushes have named. */
function rightAnswers(bodies: readonly Buffer[]) {
  const seen = bodies.map((body) => {
    const reading = parseWebhookEvent(body, null)
    if (!reading.ok) throw new Error(reading.reason)
    return { observation: reading.observation, body }
  })
  return Object.entries(answers(recordAll(seen)))
}

test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
  'S18: replicas that survive a loss of commits answer like a fresh relay (order %i)',
  async (seed) => {
    const { server, proxy, through } = await startServer()
    const world = await openWorld(seed)
    const { below, kept, receiver } = world
    const replicas = [await world.start(through), await world.start(through)]
    await world.steps(replicas, 3 + below(8))
    for (let loss = 0; loss < LOSSES; loss++) {
      await server.keep(world.pick(['fast', 'immediate']))
      const keptBefore = kept.length
      await world.steps(replicas, 1 + below(10))
      kept.splice(keptBefore)
      const sentBefore = receiver.pushes.length
      await proxy.goDown()
      await server.lose()
      // The database server assigns some numbers a second time before the surviving replicas notice the loss.
      const other = await world.start(server.url())
      await world.steps([other], below(15))
      await proxy.comeUp()
      await world.steps([...replicas, other], 3 + below(8))

      const sent = () => new Set(receiver.pushes.slice(sentBefore).map(({ body }) => body.toString()))
      const wanted = kept.slice(keptBefore).map(String)
      const isNew = (body: string) => !kept.slice(0, keptBefore).map(String).includes(body)
      await vi.waitFor(() => expect([...sent()]).toEqual(expect.arrayContaining(wanted.filter(isNew))), LATE)
      const told = () => Promise.all([...replicas, other].map(allTold))
      await vi.waitFor(async () => {
        const [one, two, right] = await told()
        expect([one, two]).toEqual([right, right])
      }, LATE)
      for (const [name, right] of rightAnswers(kept)) {
        expect((await call(other, `/v1/status/${name.replace('?', '?language=')}`)).text).toBe(right)
      }
      expect(await storedNumber(server.url(), 'select count(*) from inbox')).toBe(new Set(kept.map(String)).size)
      await other.stop()
    }
  },
)
