import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { pushBody } from '../support/builders.ts'
import { type Flood, startFlood } from '../support/flood-process.ts'
import { distinctPushes, pushPipelined } from '../support/pipelined-pushes.ts'
import { push, writeConfig } from '../support/relay.ts'
import { memoryOf, runRelay } from '../support/relay-process.ts'
import { temporaryFolder } from '../support/temporary.ts'

/** The whole of it by `npm run faults`. */
const LONG = process.env.RELAY_FAULTS === 'long'
const MB = 1024 * 1024
const KB = 1024
/** After so many pushes and a pause a relay is idle. */
const WARM_UP = 10_000
const FLOOD_MS = LONG ? 10_000 : 1500
/** Of a relay that has a processor to itself the bound is 1 s; of one that has not, this still tells it from one that is stopped. */
const SLOWEST_MS = LONG ? 1000 : 5000

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const unsigned = (bytes: number) => `POST /webhooks/status HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`

interface Sent extends Pick<Flood, 'connections' | 'request' | 'reads' | 'comesAgain'> {
  readonly name: string
  readonly to: 'public' | 'internal'
  readonly times: number
  readonly inGate: boolean
}

/** As often as it fits into what is read at a time. */
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
    name: '64 KB of pipelined GET / on each of 2,000 connections that come again when they are closed',
    to: 'public',
    connections: 2000,
    request: get('/'),
    times: timesIn64Kb(get('/')),
    reads: true,
    comesAgain: true,
    inGate: false,
  },
  {
    name: 'three pipelined GET / on each of 2,000 connections that come again when they are closed',
    to: 'public',
    connections: 2000,
    request: get('/'),
    times: 3,
    reads: true,
    comesAgain: true,
    inGate: true,
  },
  {
    name: '64 KB of pipelined unsigned pushes on each of 2,000 connections that come again when they are closed',
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

test.each(FLOODS.filter(({ inGate }) => LONG || inGate))(
  'F9: while $name, a signed push has its 200, pipelined ones too, and memory stays',
  async ({ name, to, ...sent }) => {
    await using relay = await runRelay(writeConfig(temporaryFolder(), 'http://127.0.0.1:9'))
    const pid = relay.process.pid ?? 0
    let nth = 0
    const pushed = async () => (await push(relay.publicUrl, pushBody({ trackingIds: [String(10_000_000 + nth++)] }))).status
    for (let lot = 0; lot < WARM_UP / 50; lot++) await Promise.all(Array.from({ length: 50 }, pushed))
    await pause(2000)
    const idleBytes = memoryOf(pid).residentBytes

    let untilMs = Number.POSITIVE_INFINITY
    const port = Number(new URL(to === 'public' ? relay.publicUrl : relay.internalUrl).port)
    const flooding = startFlood({ ...sent, port }).finally(() => {
      untilMs = performance.now() + FLOOD_MS
    })
    const tookMs: number[] = []
    const statuses: number[] = []
    let mostBytes = 0
    while (performance.now() < untilMs) {
      const begunAtMs = performance.now()
      statuses.push(await pushed())
      tookMs.push(performance.now() - begunAtMs)
      if (nth % 8 === 0) statuses.push(...(await pushPipelined(relay.publicUrl, distinctPushes(4, `beside-${nth}`), 2)))
      mostBytes = Math.max(mostBytes, memoryOf(pid).residentBytes)
    }
    await using flood = await flooding
    const count = await flood.count()
    tookMs.sort((a, b) => a - b)
    const msAt = (part: number) => `${Math.round(tookMs[Math.ceil(tookMs.length * part) - 1] ?? 0)} ms`
    console.info(
      [
        `F9: sent: ${name} (${Math.round(count.sentBytes / MB)} MB on ${count.connected} connections, ${count.closed} seen closed);`,
        `seen: ${JSON.stringify(count.statuses)} of those answers that were read; ${statuses.length} signed pushes,`,
        `${statuses.filter((status) => status === 200).length} with 200, p50 ${msAt(0.5)}, p99 ${msAt(0.99)}, slowest ${msAt(1)};`,
        `memory ${Math.round(idleBytes / MB)} MB idle, ${Math.round(mostBytes / MB)} MB at most`,
      ].join(' '),
    )
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    expect(tookMs.at(-1)).toBeLessThan(SLOWEST_MS)
    expect(mostBytes - idleBytes).toBeLessThan(100 * MB)
  },
  60_000,
)
