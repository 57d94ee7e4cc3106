import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { signBody } from '../../../src/core/domain/ingest/signature.ts'
import { pushBody } from '../../support/history/builders.ts'
import { type Flood, type FloodCount, startFlood } from '../../support/network/flood-process.ts'
import { distinctPushes, pushPipelined } from '../../support/network/pipelined-pushes.ts'
import { push, SHARED_KEY, writeConfig } from '../../support/relay/relay.ts'
import { memoryOf, runRelay } from '../../support/relay/relay-process.ts'
import { expectBesideControl, partOf } from '../../support/runner/beside-control.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const MB = 1024 * 1024
const KB = 1024
/** After this many pushes the relay's code is compiled, and its heap and caches have nearly their full size. */
const WARM_UP = LONG ? 10_000 : 4000
/** The default of `limits.bodyBytesInFlight`. */
const BODIES_HELD_BYTES = 32 * MB
const FLOOD_MS = LONG ? 10_000 : 1500
/** How many times as long a push may take beside a flood. It is large, because the senders of the flood use the same processors. */
const RATIO = 10

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const unsigned = (bytes: number) => `POST /webhooks/status HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`

const SIGNATURE = `x-service-hmac-sha256: ${'A'.repeat(43)}=\r\n`
const megabyte = (signature: string) =>
  `POST /webhooks/status HTTP/1.1\r\nHost: a\r\n${signature}Content-Length: ${MB}\r\n\r\n${'x'.repeat(MB)}`
const chunkedMegabyte = `POST /webhooks/status HTTP/1.1\r\nHost: a\r\n${SIGNATURE}Transfer-Encoding: chunked\r\n\r\n${`10000\r\n${'x'.repeat(64 * KB)}\r\n`.repeat(16)}0\r\n\r\n`

interface Sent extends Pick<Flood, 'connections' | 'request' | 'reads' | 'comesAgain'> {
  readonly name: string
  readonly to: 'public' | 'internal'
  readonly times: number
  readonly inGate: boolean
  /** `webhook.bodyBytesMax`, if it is not the default of the product. */
  readonly bodyBytesMax?: number
}

/** How often a request fits into 64 KB, which a server reads at once. */
const timesIn64Kb = (request: string) => Math.floor((64 * KB) / request.length)

const FLOODS: readonly Sent[] = [
  {
    name: '64 KB of pipelined GET / on each of 200 connections',
    to: 'public',
    connections: 200,
    request: get('/'),
    times: timesIn64Kb(get('/')),
    reads: true,
    comesAgain: false,
    inGate: false,
  },
  {
    name: '64 KB of pipelined GET / on each of 1,000 connections that read nothing',
    to: 'public',
    connections: 1000,
    request: get('/'),
    times: timesIn64Kb(get('/')),
    reads: false,
    comesAgain: false,
    inGate: true,
  },
  {
    name: '64 KB of pipelined GET / on each of 2,000 connections that reconnect',
    to: 'public',
    connections: 2000,
    request: get('/'),
    times: timesIn64Kb(get('/')),
    reads: true,
    comesAgain: true,
    inGate: false,
  },
  {
    name: 'three pipelined GET / on each of 2,000 connections that reconnect',
    to: 'public',
    connections: 2000,
    request: get('/'),
    times: 3,
    reads: true,
    comesAgain: true,
    inGate: false,
  },
  {
    name: '64 KB of pipelined unsigned pushes on each of 2,000 connections that reconnect',
    to: 'public',
    connections: 2000,
    request: unsigned(1000),
    times: timesIn64Kb(unsigned(1000)),
    reads: true,
    comesAgain: true,
    inGate: false,
  },
  {
    name: '64 KB of pipelined GET /metrics on each of 1,000 connections that read nothing',
    to: 'internal',
    connections: 1000,
    request: get('/metrics'),
    times: timesIn64Kb(get('/metrics')),
    reads: false,
    comesAgain: false,
    inGate: true,
  },
]

const BODIES: readonly Sent[] = [
  {
    name: '1 MB (within the limit) with a wrong signature',
    request: megabyte(SIGNATURE),
    bodyBytesMax: MB,
    inGate: true,
  },
  { name: '1 MB with a wrong signature', request: megabyte(SIGNATURE), inGate: false },
  {
    name: '1 MB in chunks (within the limit) with a wrong signature',
    request: chunkedMegabyte,
    bodyBytesMax: 2 * MB,
    inGate: false,
  },
  { name: '1 MB without a signature', request: megabyte(''), inGate: false },
].map((one) => ({
  ...one,
  name: `${one.name} on each of 500 connections`,
  to: 'public',
  connections: 500,
  times: 1,
  reads: true,
  comesAgain: true,
}))

test.each(BODIES.filter(({ inGate }) => LONG || inGate))(
  'F8: memory stays bounded and a signed push gets its 200 beside $name',
  async (sent) => {
    const growth = await besideFlood('F8', sent)
    // The bound is twice the limit for bodies in memory.
    expect(growth).toBeLessThan(64 * MB)
  },
)

test.each(FLOODS.filter(({ inGate }) => LONG || inGate))(
  'F9: memory stays bounded and signed pushes get their 200 beside $name',
  async (sent) => {
    expect(await besideFlood('F9', sent)).toBeLessThan(100 * MB)
  },
)

/** Measures how long one thread takes to verify signatures of this many bytes. A signed push may have to wait for all bodies in memory. */
function timeToVerifyMs(bytes: number): number {
  const body = Buffer.alloc(MB, 'x')
  const begunAtMs = performance.now()
  for (let left = bytes; left > 0; left -= body.length) signBody(body, SHARED_KEY)
  return performance.now() - begunAtMs
}

/** Sends signed pushes beside a flood, prints how long they took, and returns by how much the relay's memory grew. */
async function besideFlood(fault: string, { name, to, bodyBytesMax, ...sent }: Sent): Promise<number> {
  await using relay = await runRelay(
    writeConfig(
      temporaryFolder(),
      'http://127.0.0.1:9',
      bodyBytesMax === undefined ? {} : { webhook: { sharedKeys: [SHARED_KEY], bodyBytesMax } },
    ),
  )
  const pid = relay.process.pid ?? 0
  let nth = 0
  const pushed = async () => (await push(relay.publicUrl, pushBody({ trackingIds: [String(10_000_000 + nth++)] }))).status
  for (let lot = 0; lot < WARM_UP / 50; lot++) await Promise.all(Array.from({ length: 50 }, pushed))
  await pause(2000)
  const idleBytes = memoryOf(pid).residentBytes

  const port = Number(new URL(to === 'public' ? relay.publicUrl : relay.internalUrl).port)
  const statuses: number[] = []
  let mostBytes = 0
  /** Sends pushes until `isOver`, and resolves with the 99th percentile of their durations. */
  const pushUntil = async (isOver: () => boolean) => {
    const tookMs: number[] = []
    while (!isOver()) {
      const begunAtMs = performance.now()
      statuses.push(await pushed())
      tookMs.push(performance.now() - begunAtMs)
      if (nth % 8 === 0) statuses.push(...(await pushPipelined(relay.publicUrl, distinctPushes(4, `beside-${nth}`), 2)))
      mostBytes = Math.max(mostBytes, memoryOf(pid).residentBytes)
    }
    return partOf(tookMs, 0.99)
  }
  let count: FloodCount | null = null
  const beside = async () => {
    let untilMs = Number.POSITIVE_INFINITY
    const flooding = startFlood({ ...sent, port }).finally(() => {
      untilMs = performance.now() + FLOOD_MS
    })
    const p99Ms = await pushUntil(() => performance.now() > untilMs)
    await using flood = await flooding
    count = await flood.count()
    return p99Ms
  }
  const alone = async () => {
    const untilMs = performance.now() + FLOOD_MS
    return (await pushUntil(() => performance.now() > untilMs)) + (bodyBytesMax === undefined ? 0 : timeToVerifyMs(BODIES_HELD_BYTES))
  }
  const seen = await expectBesideControl({ control: alone, fault: beside, ratio: RATIO })
  console.info(
    [
      `${fault}: sent: ${name} (${JSON.stringify(count)});`,
      `seen: ${statuses.length} signed pushes, p99 of one ${seen};`,
      `memory ${Math.round(idleBytes / MB)} MB idle, ${Math.round(mostBytes / MB)} MB at most`,
    ].join(' '),
  )
  expect(statuses.filter((status) => status !== 200)).toEqual([])
  return mostBytes - idleBytes
}
