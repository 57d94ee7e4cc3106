import { writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { certificate, certificateKey } from '../../core/outbound/self-signed.ts'
import { pushBody } from '../../support/history/builders.ts'
import { type RunningFlood, startFlood } from '../../support/network/flood-process.ts'
import { SHARED_KEY, writeConfig } from '../../support/relay/relay.ts'
import { runRelay } from '../../support/relay/relay-process.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

/** There are one and a half times as many connections as slots. `npm run faults` uses the default number of slots. */
const SLOTS = LONG ? 4096 : 1000
const CONNECTIONS = LONG ? 6000 : 1500
const PUSHES = LONG ? 1000 : 60
const TRIES_MAX = 20
/** The start of a TLS record that announces 512 bytes of handshake. */
const HALF_HANDSHAKE = '\x16\x03\x01\x02\x00\x01'

let nth = 0

/** Pushes on a new connection, and resolves with the status or with the error. */
function push(publicUrl: string): Promise<number | string | undefined> {
  const body = pushBody({ trackingIds: [String(10_000_000 + nth++)] })
  const headers = { 'Content-Type': 'application/json', 'x-service-hmac-sha256': signBody(body, SHARED_KEY) }
  const sent = request(`${publicUrl}/webhooks/status`, { method: 'POST', headers, agent: false, rejectUnauthorized: false })
  return new Promise((resolve) => {
    sent.on('response', (answer) => void answer.resume().once('end', () => resolve(answer.statusCode)))
    sent.on('error', ({ message }) => resolve(message))
    sent.end(body)
  })
}

/**
 * Pushes beside a flood. On a slow machine the flood may open as many connections as there are slots during one push. Then the connection of the
 * push is the oldest one without a request, and the relay rightly closes it. So such a push is sent again, as a carrier does. `SLOTS / 2`: the
 * relay may accept some connections later than the flood counts them.
 */
async function pushBeside(flood: RunningFlood, publicUrl: string): Promise<number | string | undefined> {
  for (let tries = 1; ; tries++) {
    const before = await flood.count()
    const outcome = await push(publicUrl)
    if (outcome === 200 || tries === TRIES_MAX) return outcome
    const after = await flood.count()
    if (after.connected - before.connected < SLOTS / 2) return outcome
  }
}

async function pushInTurn(pushOnce: () => Promise<number | string | undefined>) {
  const outcomes: (number | string | undefined)[] = []
  const tookMs: number[] = []
  for (let at = 0; at < PUSHES; at++) {
    const begunAtMs = performance.now()
    outcomes.push(await pushOnce())
    tookMs.push(performance.now() - begunAtMs)
  }
  tookMs.sort((a, b) => a - b)
  return { outcomes, p99Ms: tookMs[Math.ceil(PUSHES * 0.99) - 1] ?? 0 }
}

test(`I16: signed pushes go on beside ${CONNECTIONS} half TLS handshakes`, async () => {
  const folder = temporaryFolder()
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  writeFileSync(certFile, certificate)
  writeFileSync(keyFile, certificateKey)
  const listen = { public: { host: '127.0.0.1', port: 0, tls: { certFile, keyFile } }, internal: { host: '127.0.0.1', port: 0 } }
  await using relay = await runRelay(writeConfig(folder, 'http://127.0.0.1:9', { listen, limits: { connections: SLOTS } }))
  const alone = () => push(relay.publicUrl)
  await pushInTurn(alone)
  const control = await pushInTurn(alone)
  const port = Number(new URL(relay.publicUrl).port)
  await using flood = await startFlood({ port, connections: CONNECTIONS, request: HALF_HANDSHAKE, times: 1, reads: true, comesAgain: true })
  const beside = await pushInTurn(() => pushBeside(flood, relay.publicUrl))
  const { connected, closed } = await flood.count()
  console.info(
    [
      `I16: sent: ${connected} connections that stop in the middle of a TLS handshake, to ${SLOTS} slots, ${closed} seen closed;`,
      `${PUSHES} signed pushes, each on a connection of its own, p99 ${Math.round(beside.p99Ms)} ms; without them ${Math.round(control.p99Ms)} ms`,
    ].join(' '),
  )
  expect(control.outcomes).toEqual(Array(PUSHES).fill(200))
  expect(beside.outcomes).toEqual(Array(PUSHES).fill(200))
})
