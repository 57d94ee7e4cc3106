import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { listen } from '../support/network/listen.ts'
import { type Mood, startMoodyReceiver } from '../support/network/moody-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { relayOfTest } from '../support/relay/relay-of-test.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

const KEY = 'the-key-of-these-endpoints'
const PER_ENDPOINT = 4

const parcels = (count: number): readonly Buffer[] =>
  Array.from({ length: count }, (_, at) => pushBody({ trackingIds: [String(7000 + at)] }))

test('O5: deliveries whose results a kill left unsaved are sent again under the same ids', async () => {
  let onArrival = (_count: number): void => undefined
  let count = 0
  const mood = (): Mood => {
    onArrival(++count)
    // The answers are so slow that the limit of simultaneous attempts is reached before the first answer.
    return { status: 200, afterMs: 500 }
  }
  await using receiver = await startMoodyReceiver(KEY, mood)
  const config = writeConfig(temporaryFolder(), NO_CARRIER, {
    endpoints: [{ name: 'shop', url: receiver.url, sharedKey: KEY }],
    delivery: { schedule: ['50ms'], jitter: 0, timeout: '5s', perEndpoint: PER_ENDPOINT, allowNetworks: ['127.0.0.0/8'] },
  })
  const bodies = parcels(12)
  receiver.setDown(true)
  {
    await using relay = await runRelay(config)
    for (const body of bodies) expect((await push(relay.publicUrl, body)).status).toBe(200)
    // Kill the relay after its first success, when as many attempts as allowed are under way. Their answers of 200 are lost.
    onArrival = (nth) => {
      if (nth === 1 + PER_ENDPOINT) relay.process.kill('SIGKILL')
    }
    receiver.setDown(false)
    expect(await relay.ended).toEqual({ code: null, signal: 'SIGKILL' })
  }
  const sent = receiver.arrivals.slice(1).map(({ body }) => body)
  expect(sent).toHaveLength(PER_ENDPOINT)

  await using again = await runRelay(config)
  const operate = await operatorOf(again)
  await vi.waitFor(async () => expect((await operate('GET', '/relay/deliveries?state=delivered')).body.deliveries).toHaveLength(12), {
    timeout: 60_000,
    interval: 100,
  })
  const timesOf = (body: Buffer) => receiver.arrivals.filter((arrival) => arrival.body === body.toString())
  for (const body of bodies) {
    const times = timesOf(body)
    expect(times).toHaveLength(sent.includes(body.toString()) ? 2 : 1)
    expect(new Set(times.map(({ webhookId, sequence, previous }) => `${webhookId} ${sequence} ${previous}`)).size).toBe(1)
    expect(times.every(({ isSigned }) => isSigned)).toBe(true)
  }
  expect(new Set(receiver.arrivals.map(({ webhookId }) => webhookId)).size).toBe(bodies.length)
})

/** Accepts connections, and then either does nothing or sends its answer in drips. */
async function startHanging(drip: string): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined).resume())
    let sent = 0
    const timer = setInterval(() => socket.write(drip[sent++] ?? ''), 50)
    socket.on('close', () => clearInterval(timer))
  })
  const port = await listen(server)
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return `http://127.0.0.1:${port}/`
}

test('O4: endpoints that swallow, drip or refuse everything do not delay other endpoints', async () => {
  await using healthy = await startMoodyReceiver(KEY, () => ({ status: 200, afterMs: 0 }))
  const urls = [
    await startHanging(''),
    await startHanging(''),
    await startHanging(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(900)}`),
    'http://127.0.0.1:9/',
  ]
  const relay = await relayOfTest({
    endpoints: [...urls, healthy.url].map((url, at) => ({ name: `endpoint ${at}`, url, sharedKey: KEY })),
    delivery: { timeout: '1m', perEndpoint: PER_ENDPOINT, allowNetworks: ['127.0.0.0/8'] },
  })
  const bodies = parcels(60)
  await Promise.all(bodies.map((body) => push(relay.publicUrl, body)))
  await vi.waitFor(() => expect(healthy.arrivals).toHaveLength(bodies.length), { timeout: 60_000 })
  const operate = await operatorOf(relay)
  const waiting = await operate('GET', '/relay/deliveries?endpoint=1')
  expect(waiting.body.deliveries).toHaveLength(bodies.length)
  expect(JSON.stringify(waiting.body.deliveries)).not.toContain('"delivered"')
})
