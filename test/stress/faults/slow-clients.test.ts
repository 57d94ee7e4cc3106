import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/builders.ts'
import { LONG } from '../../support/long-form.ts'
import { push, writeConfig } from '../../support/relay.ts'
import { metricOf, runRelay } from '../../support/relay-process.ts'
import { temporaryFolder } from '../../support/temporary.ts'

/** As many as two thousand by `npm run faults`. */
const CONNECTIONS = LONG ? 2000 : 600
const RSS_GROWTH_MAX = 64 * 1024 * 1024
/** What is given to a header and to a whole request, and then some for a machine that is busy. */
const HEADERS_MS = 5000
const REQUEST_MS = 10_000
const SLACK_MS = 4000

const WARM_UP = 8000
/** So many connections at a time. */
const LOT = 200

const HEAD = 'POST /webhooks/status HTTP/1.1\r\nHost: relay\r\n'
const SLOW = [
  { sends: '', drip: '', withinMs: HEADERS_MS },
  { sends: HEAD, drip: 'x', withinMs: HEADERS_MS },
  { sends: `${HEAD}x-service-hmac-sha256: ${'A'.repeat(43)}=\r\nContent-Length: 5000\r\n\r\n{`, drip: ' ', withinMs: REQUEST_MS },
] as const

/** Opens a connection that never gets to an end; resolves with how long it was left open. */
function dawdle(port: number, { sends, drip }: (typeof SLOW)[number]): Promise<number> {
  const begunAtMs = performance.now()
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => void socket.write(sends))
    const timer = setInterval(() => void socket.write(drip), 1000)
    socket.on('error', () => undefined).resume()
    socket.on('close', () => {
      clearInterval(timer)
      resolve(performance.now() - begunAtMs)
    })
  })
}

test(`H15, F7: ${CONNECTIONS} connections that send nothing, or drip, are closed in time; meanwhile pushes are taken and memory stays`, async () => {
  await using relay = await runRelay(writeConfig(temporaryFolder(), 'http://127.0.0.1:9'))
  const memory = async () => await metricOf(relay.internalUrl, 'process_resident_memory_bytes')
  const pushed = async (nth: number) => (await push(relay.publicUrl, pushBody({ trackingIds: [String(10_000_000 + nth)] }))).status
  // What a relay takes for itself once it works: code it compiles, a heap and caches as large as its load wants them.
  for (let nth = 0; nth < WARM_UP / 50; nth++) await Promise.all(Array.from({ length: 50 }, (_, at) => pushed(nth * 50 + at)))
  const before = await memory()

  const port = Number(new URL(relay.publicUrl).port)
  const open: Promise<{ readonly tookMs: number; readonly withinMs: number }>[] = []
  for (let at = 0; at < CONNECTIONS; at++) {
    const slow = SLOW[at % SLOW.length] ?? SLOW[0]
    open.push(dawdle(port, slow).then((tookMs) => ({ tookMs, withinMs: slow.withinMs })))
    // The kernel forgets connections that find too many others waiting to be accepted, and who says nothing never hears of it.
    if (at % LOT === LOT - 1) await pushed(WARM_UP + at)
  }
  let left = true
  const closed = Promise.all(open).finally(() => {
    left = false
  })
  const answered: { readonly status: number; readonly tookMs: number }[] = []
  let most = 0
  for (let nth = 0; left; nth++) {
    const begunAtMs = performance.now()
    answered.push({ status: await pushed(WARM_UP + CONNECTIONS + nth), tookMs: performance.now() - begunAtMs })
    if (nth % 50 === 0) most = Math.max(most, await memory())
  }
  const tookMs = answered.map((one) => one.tookMs).toSorted((a, b) => a - b)
  const msAt = (part: number) => `${Math.round(tookMs[Math.ceil(tookMs.length * part) - 1] ?? 0)} ms`
  const byStatus = Map.groupBy(answered, ({ status }) => status)
  console.info(
    [
      `F7: sent: ${CONNECTIONS} connections that send nothing, half a head, or half a body;`,
      `seen: the last was closed after ${Math.round(Math.max(...(await closed).map((one) => one.tookMs)))} ms;`,
      `${answered.length} signed pushes (${[...byStatus].map(([status, all]) => `${status}: ${all.length}`).join(', ')}),`,
      `p50 ${msAt(0.5)}, p99 ${msAt(0.99)}; memory ${Math.round(before / 1048576)} MB idle, ${Math.round(most / 1048576)} MB at most`,
    ].join(' '),
  )
  for (const { tookMs, withinMs } of await closed) expect(tookMs).toBeLessThan(withinMs + SLACK_MS)
  expect(answered.length).toBeGreaterThan(50)
  expect(answered.filter(({ status }) => status !== 200)).toEqual([])
  // The middle one: the figures of latency are the bench's, on a machine that does nothing else.
  expect(tookMs[Math.floor(tookMs.length / 2)]).toBeLessThan(1000)
  expect(most - before).toBeLessThan(RSS_GROWTH_MAX)
})
