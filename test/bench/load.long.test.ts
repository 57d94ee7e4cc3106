import { createServer, type RequestListener } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { EVENTS_PER_PARCEL, eventAt, eventBody, trackingId } from '../../bench/load/event.ts'
import { startGenerator } from '../../bench/load/generator-process.ts'
import { type RequestPlan, WEBHOOK_PATH } from '../../bench/load/requests.ts'
import { parseWebhookEvent } from '../../src/core/domain/ingest/parse-push.ts'
import { signBody } from '../../src/core/domain/ingest/signature.ts'
import { listenInTest } from '../support/network/listen.ts'
import { withBody } from '../support/network/request-server.ts'

const KEY = 'a-shared-key-for-tests-only'

function pushes(events: number): RequestPlan {
  return { kind: 'pushes', firstParcel: 0, events, sharedKey: KEY, repeat: false }
}

const serve = (listener: RequestListener) => listenInTest(createServer(listener))

function startLoad() {
  const load = startGenerator()
  onTestFinished(() => load.stop())
  return load
}

test('each parcel gets seven different events of about 450 bytes, which the relay understands', () => {
  const bodies = Array.from({ length: 2000 * EVENTS_PER_PARCEL }, (_, at) => eventAt(at, 500)).map(({ parcel, nth }) =>
    eventBody(parcel, nth, Date.UTC(2026, 2, 1)),
  )
  expect(new Set(bodies.map(String)).size).toBe(bodies.length)
  const mean = bodies.reduce((sum, body) => sum + body.length, 0) / bodies.length
  expect(mean).toBeGreaterThan(430)
  expect(mean).toBeLessThan(470)
  const counts = new Map<string, number>()
  for (const body of bodies) {
    const reading = parseWebhookEvent(body, null)
    const id = reading.ok ? (reading.observation.trackingIds[0] ?? '') : 'not understood'
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  expect([...new Set(counts.values())]).toEqual([EVENTS_PER_PARCEL])
  expect(counts.has(trackingId(500))).toBe(true)
})

test('a closed loop sends each signed push once, ends after the last, and counts all answers', async () => {
  const seen = new Set<string>()
  const port = await serve(
    withBody((request, body, response) => {
      if (request.url === WEBHOOK_PATH && request.headers['x-service-hmac-sha256'] === signBody(body, KEY)) seen.add(String(body))
      response.end('12345')
    }),
  )
  const load = startLoad()
  await load.prepare(pushes(500))
  const result = await load.run({ port, connections: 8, pace: { kind: 'closed', durationMs: 10_000 } })
  expect(result.outcomes).toEqual({ 200: 500 })
  expect(result.bodyBytes).toBe(2500)
  expect(seen.size).toBe(500)
})

test('run fails if an answer is not 200, and runWhatever counts such answers instead', async () => {
  let answered = 0
  const port = await serve((request, response) => {
    request.resume()
    answered += 1
    response.writeHead(answered % 10 === 0 ? 503 : 200).end()
  })
  const load = startLoad()
  const options = { port, connections: 4, pace: { kind: 'closed' as const, durationMs: null } }
  await load.prepare(pushes(100))
  expect((await load.runWhatever(options)).outcomes).toEqual({ 200: 90, 503: 10 })
  await load.prepare(pushes(100))
  await expect(load.run(options)).rejects.toThrow('{"200":90,"503":10}')
})

test('a run ends when the server drops its connections, and counts the unanswered requests', async () => {
  let answered = 0
  const port = await serve((request, response) => {
    answered += 1
    if (answered <= 50) response.end()
    else request.socket.destroy()
  })
  const load = startLoad()
  await load.prepare(pushes(1000))
  const { outcomes } = await load.runWhatever({ port, connections: 4, pace: { kind: 'closed', durationMs: null } })
  expect(outcomes).toMatchObject({ 200: 50 })
  expect((outcomes.broken ?? 0) + (outcomes.failedOutcome ?? 0)).toBeGreaterThan(0)
})

test('an open loop counts a stall in every request that was due during the stall', async () => {
  const stallMs = 300
  let stalled = false
  const port = await serve((request, response) => {
    request.resume()
    const waitMs = stalled ? 0 : stallMs
    stalled = true
    setTimeout(() => response.end(), waitMs)
  })
  const load = startLoad()
  await load.prepare(pushes(200))
  const { latencyMs, outcomes } = await load.run({ port, connections: 1, pace: { kind: 'open', ratePerSecond: 400, durationMs: 500 } })
  expect(outcomes).toEqual({ 200: 200 })
  // Latency is measured from the time a request was due, not from its sending. So more than half of the requests are slow.
  expect(latencyMs.p50).toBeGreaterThan(stallMs / 10)
  expect(latencyMs.max).toBeGreaterThanOrEqual(stallMs)
})
