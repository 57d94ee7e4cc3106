import { expect, onTestFinished, test } from 'vitest'
import { startPostgres } from '../../src/cli/demo/postgres/throwaway-server.ts'
import { pushBody } from '../support/builders.ts'
import { textOf } from '../support/caught-up.ts'
import { internalRoutes, requestOf } from '../support/internal-routes.ts'
import { LONG } from '../support/long-form.ts'
import { onPostgres } from '../support/on-postgres.ts'
import { takeConnections, withClient } from '../support/postgres-client.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { type Answered, distinctPushes, startLoad } from '../support/push-load.ts'
import { ADMIN, ask, logIn, push, type Sections, writeConfig } from '../support/relay.ts'
import { inSeconds, type RunningProcess, runRelay } from '../support/relay-process.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** Nobody listens there. */
const NO_CARRIER = 'http://127.0.0.1:9'
const KILLS = LONG ? 200 : 10
const SWALLOWED_MS = LONG ? 30_000 : 5000
const RECOVERY_MS = 5000
const PARCELS = 10
const HIT = 'parcel-relay; hit'
/** Of a flood. */
const SENDERS = LONG ? 256 : 64
/** Of each of 64 readers. */
const READS = LONG ? 200 : 20

async function startOn(url: string, sections: Sections = {}) {
  const relay = await runRelay(writeConfig(temporaryFolder(), NO_CARRIER, { ...sections, ...(await onPostgres(url)) }))
  onTestFinished(() => relay[Symbol.asyncDispose]())
  return { relay, asker: { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) } }
}

async function startThroughProxy() {
  const { url } = await createDatabase('nothing')
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const through = new URL(url)
  through.port = String(proxy.port)
  return { proxy, ...(await startOn(through.href)) }
}

/** Resolves when pushes, reads and readiness are as before; with the time that took. */
async function recovery(relay: RunningProcess, asker: { readonly internalUrl: string; readonly token: string }): Promise<number> {
  const fromMs = performance.now()
  const pushes = distinctPushes(1)
  const statuses = async () => [
    (await push(relay.publicUrl, pushes.next())).status,
    (await ask(asker.internalUrl, asker.token, '/v1/status/880000/all')).status,
    (await ask(asker.internalUrl, asker.token, '/relay/endpoints')).status,
    (await fetch(`${relay.internalUrl}/readyz`)).status,
  ]
  await expect.poll(statuses, { timeout: 30_000, interval: 50 }).toEqual([200, 200, 200, 200])
  return performance.now() - fromMs
}

/** That what was not answered 200 was answered 503, with when to come again, and that what was answered 200 is there. */
async function expectNothingLost(
  answers: readonly Answered[],
  pushes: ReturnType<typeof distinctPushes>,
  asker: Parameters<typeof textOf>[0],
) {
  const refused = answers.filter(({ status }) => status !== 200)
  expect(refused.filter(({ status, retryAfter }) => status !== 503 || !(Number(retryAfter) > 0))).toEqual([])
  const accepted = answers.filter(({ status }) => status === 200).map(({ body }) => body)
  const histories = await Promise.all(pushes.parcels(accepted).map((id) => textOf(asker, id, 'all', 'en')))
  const all = histories.join('\n')
  expect(accepted.filter((body) => !all.includes(pushes.entryOf(body)))).toEqual([])
  return { accepted, refused }
}

const endBackend = `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name = 'parcel-relay' order by random() limit 1`

test(`S18: of backends that are ended at random under load, ${KILLS} times, each fails what it had with 503; nothing acknowledged is lost, and what comes again is kept once`, async () => {
  const { url, name } = await createDatabase('nothing')
  const { relay, asker } = await startOn(url)
  const pushes = distinctPushes(PARCELS)
  const load = startLoad(relay.publicUrl, 16, pushes.next)
  await load.untilAnswered(50)
  await withClient(url, async (client) => {
    for (let kill = 1; kill <= KILLS; kill++) {
      await client.query(endBackend, [name])
      await load.untilAnswered(50 + kill * 30)
    }
  })
  const { accepted, refused } = await expectNothingLost(await load.stop(), pushes, asker)
  expect(refused.length).toBeGreaterThan(0)
  for (const { body } of refused) expect((await push(relay.publicUrl, body)).status).toBe(200)
  const kept = await withClient(url, (client) => client.query<{ count: number }>('select count(*)::integer as count from inbox'))
  expect(kept.rows).toEqual([{ count: accepted.length + refused.length }])
  expect(relay.process.exitCode).toBeNull()
}, 240_000)

test(`S18: while the network swallows everything for ${SWALLOWED_MS / 1000} s each push and read is answered 503 within 1 s, and all is well within 5 s of its end`, async () => {
  const { proxy, relay, asker } = await startThroughProxy()
  const pushes = distinctPushes(PARCELS)
  const load = startLoad(relay.publicUrl, 16, pushes.next)
  await load.untilAnswered(200)
  const hot = '/v1/status/880003/all?language=en'
  for (let time = 0; time < 2; time++) expect((await ask(asker.internalUrl, asker.token, hot)).headers.get('cache-status')).toBe(HIT)
  const fromMs = performance.now()
  proxy.swallow()
  const timed = async (status: Promise<Response>) => {
    const begunMs = performance.now()
    const { status: code, headers } = await status
    return { code, retryAfter: Number(headers.get('retry-after')), tookMs: performance.now() - begunMs }
  }
  const cold = '/v1/status/880001/all'
  const reads = [cold, hot].map((path) => timed(ask(asker.internalUrl, asker.token, path)))
  const first = await Promise.all([...reads, timed(push(relay.publicUrl, pushes.next()))])
  for (const { code, retryAfter, tookMs } of first) expect([code, retryAfter > 0, tookMs < 1000]).toEqual([503, true, true])
  const paths = [cold, hot, '/v1/status/880002/latest', '/relay/endpoints', '/relay/events', '/relay/parcels/880001', '/readyz']
  while (performance.now() - fromMs < SWALLOWED_MS) {
    for (const path of paths) {
      const answer = await timed(ask(asker.internalUrl, asker.token, path))
      expect([path, answer.code]).toEqual([path, 503])
      expect([path, answer.tookMs < 1000]).toEqual([path, true])
      if (path !== '/readyz') expect([path, answer.retryAfter > 0]).toEqual([path, true])
    }
  }
  const refused = load.answers().filter(({ status }) => status === 503)
  const longestMs = Math.max(...refused.map(({ begunAtMs, tookMs }) => begunAtMs + tookMs - Math.max(begunAtMs, fromMs)))
  proxy.flow()
  const recoveredMs = await recovery(relay, asker)
  await expectNothingLost(await load.stop(), pushes, asker)
  console.log(
    `first answers of the outage ${first.map(({ tookMs }) => Math.round(tookMs)).join(', ')} ms, the longest of ${refused.length} pushes ${Math.round(longestMs)} ms; ` +
      `recovered ${Math.round(recoveredMs)} ms`,
  )
  expect([refused.length > 0, longestMs < 1000]).toEqual([true, true])
  expect(recoveredMs).toBeLessThan(RECOVERY_MS)
  expect(relay.process.exitCode).toBeNull()
}, 90_000)

test('a server that is only busy makes nothing fail: in a flood of pushes each of them, and each read, is answered 200', async () => {
  const { relay, asker } = await startOn((await createDatabase('nothing')).url)
  const parcels = 500
  const load = startLoad(relay.publicUrl, SENDERS, distinctPushes(parcels).next)
  await load.untilAnswered(2 * parcels)
  const longestMs = await Promise.all(
    Array.from({ length: 64 }, async (_, reader) => {
      let longest = 0
      for (let nth = 0; nth < READS; nth++) {
        const begunMs = performance.now()
        const { status } = await ask(asker.internalUrl, asker.token, `/v1/status/88000${(reader * READS + nth) % parcels}/all`)
        expect(status).toBe(200)
        longest = Math.max(longest, performance.now() - begunMs)
      }
      return longest
    }),
  )
  const pushes = await load.stop()
  expect(pushes.filter(({ status }) => status !== 200)).toEqual([])
  console.log(
    `the longest of ${64 * READS} reads took ${Math.round(Math.max(...longestMs))} ms, of ${pushes.length} pushes ${Math.round(Math.max(...pushes.map(({ tookMs }) => tookMs)))} ms`,
  )
}, 240_000)

test('S18: a relay that is stopped while the network swallows everything waits for no answer of the server, and ends within seconds', async () => {
  const { proxy, relay } = await startThroughProxy()
  const load = startLoad(relay.publicUrl, 16, distinctPushes(PARCELS).next)
  await load.untilAnswered(50)
  proxy.swallow()
  const fromMs = performance.now()
  expect(await relay.stop()).toEqual({ code: 0, signal: null })
  const tookMs = performance.now() - fromMs
  console.log(`stopped in ${Math.round(tookMs)} ms`)
  expect(tookMs).toBeLessThan(10_000)
  await load.stop()
}, 30_000)

test('S18: without a connection to be had from the server pushes and reads are answered 503, and all is well within 5 s of there being one', async () => {
  await using server = await startPostgres({ settings: { max_connections: '20' } })
  const { relay, asker } = await startOn(server.url())
  expect((await push(relay.publicUrl, distinctPushes(1).next())).status).toBe(200)
  const giveBack = await takeConnections(server.url())
  const statuses = async () => [
    (await push(relay.publicUrl, distinctPushes(1).next())).status,
    (await ask(asker.internalUrl, asker.token, '/v1/status/880000/all')).status,
    (await fetch(`${relay.internalUrl}/readyz`)).status,
  ]
  await expect.poll(statuses, { timeout: 15_000 }).toEqual([503, 503, 503])
  await giveBack()
  const recoveredMs = await recovery(relay, asker)
  console.log(`recovered ${Math.round(recoveredMs)} ms after connections were to be had`)
  expect(recoveredMs).toBeLessThan(RECOVERY_MS)
}, 60_000)

/** Of these nothing is read from the store or written to it. */
const NEED_NO_STORE = /^(?:HEAD|POST \/auth\/token|GET \/(?:healthz|metrics|relay\/upstream))\b/

test('S18: every route that needs the store answers 503 storage_unavailable, never 500, while the server is down', async () => {
  await using server = await startPostgres()
  const { relay, asker } = await startOn(server.url(), { delivery: { allowNetworks: ['127.0.0.0/8'] } })
  expect((await push(relay.publicUrl, pushBody({ trackingIds: ['1001'] }))).status).toBe(200)
  await server.stop('immediate')
  await expect.poll(async () => (await push(relay.publicUrl, pushBody())).status, { timeout: 10_000 }).toBe(503)
  const answers: unknown[] = []
  const asked = internalRoutes().filter((route) => !NEED_NO_STORE.test(route))
  for (const route of asked) {
    const { method, path, type, body } = requestOf(route)
    const answer = await fetch(`${relay.internalUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${asker.token}`, 'content-type': type },
      ...(method === 'GET' ? {} : { body }),
    })
    const text = await answer.text()
    const isSaid = text.includes('storage_unavailable') && (path === '/readyz' || Number(answer.headers.get('retry-after')) > 0)
    answers.push([route, answer.status, isSaid ? 'storage_unavailable' : text])
  }
  expect(answers).toEqual(asked.map((route) => [route, 503, 'storage_unavailable']))
  await server.start()
  expect(await recovery(relay, asker)).toBeLessThan(RECOVERY_MS)
}, 60_000)

const RESTARTS = LONG ? 10 : 2

test(`S18: over ${RESTARTS} restarts of the server under load every event arrives at its endpoint at least once, and none overtakes another of its parcel`, async () => {
  await using server = await startPostgres()
  await using receiver = await startWebhookReceiver()
  const { relay, asker } = await startOn(server.url(), {
    ...inSeconds,
    endpoints: [{ name: 'shop', url: receiver.url, sharedKey: 'the-key-of-the-endpoint' }],
    delivery: { schedule: ['100ms', '200ms'], allowNetworks: ['127.0.0.0/8'] },
  })
  const pushes = distinctPushes(PARCELS)
  const load = startLoad(relay.publicUrl, 16, pushes.next)
  const recoveredMs: number[] = []
  for (let restart = 1; restart <= RESTARTS; restart++) {
    await load.untilAnswered(restart * 200)
    await server.stop(restart % 2 === 0 ? 'fast' : 'immediate')
    await load.untilAnswered(restart * 200 + 100)
    await server.start()
    recoveredMs.push(await recovery(relay, asker))
  }
  const { accepted } = await expectNothingLost(await load.stop(), pushes, asker)
  const arrived = () => new Set(receiver.pushes.map(({ body }) => body.toString()))
  await expect.poll(() => accepted.filter((body) => !arrived().has(body)), { timeout: 30_000, interval: 100 }).toEqual([])
  const sent = new Set(['0'])
  for (const { headers } of receiver.pushes) {
    expect(sent).toContain(headers['relay-previous-sequence'])
    sent.add(headers['relay-sequence'] ?? '')
  }
  console.log(
    `recovered ${recoveredMs.map(Math.round).join(', ')} ms after a start; ${accepted.length} events, ${receiver.pushes.length} posts`,
  )
  expect(recoveredMs.filter((ms) => ms >= RECOVERY_MS)).toEqual([])
}, 120_000)
