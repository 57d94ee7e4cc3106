import { expect, test } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import type { TcpProxy } from '../support/network/tcp-proxy.ts'
import { internalRoutes, requestOf } from '../support/portal/internal-routes.ts'
import type { Asker } from '../support/relay/caught-up.ts'
import { ask, push } from '../support/relay/relay.ts'
import type { RunningProcess } from '../support/relay/relay-process.ts'
import { byForm, LONG } from '../support/runner/long-form.ts'
import { withinOwed } from '../support/runner/real-time.ts'
import { takeConnections } from '../support/store/postgres-client.ts'
import { startOwnServer } from '../support/store/postgres-database.ts'

import { expectNothingLost, RECOVERY_MS, recovery, startOn, startThroughProxy } from './postgres-world.ts'

const SWALLOWED_MS = LONG ? 30_000 : 5000
const PARCELS = 10
/** Senders that push again as soon as they get an answer, also during an outage. */
const SENDERS = byForm(4, 16)
const HIT = 'parcel-relay; hit'

type Server = Awaited<ReturnType<typeof startOwnServer>>

test(`S18: requests get a 503 while all packets are lost for ${SWALLOWED_MS / 1000} s, and all recovers in 5 s`, async () => {
  const { proxy, relay, asker } = await startThroughProxy()
  const pushes = distinctPushes(PARCELS)
  const load = startLoad(relay.publicUrl, SENDERS, pushes.next)
  await load.untilAnswered(SENDERS * 12)
  const hot = '/v1/status/880003/all?language=en'
  const cacheStatus = async () => (await ask(asker.internalUrl, asker.token, hot)).headers.get('cache-status')
  // On a busy machine some of the first pushes are refused, so the parcel may not be known yet.
  await expect.poll(cacheStatus).toBe(HIT)
  expect(await cacheStatus()).toBe(HIT)
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
  for (const { code, retryAfter, tookMs } of first) expect([code, retryAfter > 0, tookMs < withinOwed(1000)]).toEqual([503, true, true])
  const paths = [cold, hot, '/v1/status/880002/latest', '/relay/endpoints', '/relay/events', '/relay/parcels/880001', '/readyz']
  while (performance.now() - fromMs < SWALLOWED_MS) {
    for (const path of paths) {
      const answer = await timed(ask(asker.internalUrl, asker.token, path))
      expect([path, answer.code]).toEqual([path, 503])
      expect([path, answer.tookMs < withinOwed(1000)]).toEqual([path, true])
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
  expect([refused.length > 0, longestMs < withinOwed(1000)]).toEqual([true, true])
  expect(recoveredMs).toBeLessThan(RECOVERY_MS)
  expect(relay.process.exitCode).toBeNull()
  await expectStopped(relay, proxy)
})

/** Expects that a relay can be stopped within seconds while it waits for a database server that never answers. */
async function expectStopped(relay: RunningProcess, proxy: TcpProxy): Promise<void> {
  const load = startLoad(relay.publicUrl, 16, distinctPushes(PARCELS).next)
  await load.untilAnswered(50)
  proxy.swallow()
  const fromMs = performance.now()
  expect(await relay.stop()).toEqual({ code: 0, signal: null })
  const tookMs = performance.now() - fromMs
  console.log(`stopped in ${Math.round(tookMs)} ms`)
  expect(tookMs).toBeLessThan(withinOwed(10_000))
  await load.stop()
}

const fewConnections = { settings: { max_connections: '20' } }

test('S18: every route that needs the store answers 503, not 500, while the server is down', async () => {
  await using server = await startOwnServer(fewConnections)
  const { relay, asker } = await startOn(server.url(), { delivery: { allowNetworks: ['127.0.0.0/8'] } })
  await expectNoConnections(server, relay, asker)
  await expectDown(server, relay, asker)
})

async function expectNoConnections(server: Server, relay: RunningProcess, asker: Asker): Promise<void> {
  expect((await push(relay.publicUrl, distinctPushes(1).next())).status).toBe(200)
  const giveBack = await takeConnections(server.url())
  const statuses = async () => [
    (await push(relay.publicUrl, distinctPushes(1).next())).status,
    (await ask(asker.internalUrl, asker.token, '/v1/status/880000/all')).status,
    (await fetch(`${relay.internalUrl}/readyz`)).status,
  ]
  await expect.poll(statuses, { timeout: 60_000 }).toEqual([503, 503, 503])
  await giveBack()
  const recoveredMs = await recovery(relay, asker)
  console.log(`recovered ${Math.round(recoveredMs)} ms after connections were to be had`)
  expect(recoveredMs).toBeLessThan(RECOVERY_MS)
}

/** Routes that neither read nor write the store. The routes of backups are among them, because a relay on PostgreSQL makes none. */
const NEED_NO_STORE =
  /^(?:HEAD|POST \/auth\/token|(?:GET|POST) \/relay\/backups|GET \/(?:healthz|metrics|openapi\.json|docs|docs\/:page|relay\/upstream))\b/

async function expectDown(server: Server, relay: RunningProcess, asker: Asker): Promise<void> {
  expect((await push(relay.publicUrl, pushBody({ trackingIds: ['1001'] }))).status).toBe(200)
  await server.stop('immediate')
  await expect.poll(async () => (await push(relay.publicUrl, pushBody())).status, { timeout: 60_000 }).toBe(503)
  const answers: unknown[] = []
  const asked = internalRoutes().filter((route) => !NEED_NO_STORE.test(route))
  for (const route of asked) {
    const { method, path, type, body } = requestOf(route)
    const answer = await fetch(`${relay.internalUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${asker.token}`, 'content-type': type },
      ...(body === null ? {} : { body }),
    })
    const text = await answer.text()
    const isSaid = text.includes('storage_unavailable') && (path === '/readyz' || Number(answer.headers.get('retry-after')) > 0)
    answers.push([route, answer.status, isSaid ? 'storage_unavailable' : text.slice(0, 200)])
  }
  expect(answers).toEqual(asked.map((route) => [route, 503, 'storage_unavailable']))
  await server.start()
  expect(await recovery(relay, asker)).toBeLessThan(RECOVERY_MS)
}
