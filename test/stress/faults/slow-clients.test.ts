import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { push, writeConfig } from '../../support/relay/relay.ts'
import { metricOf, runRelay } from '../../support/relay/relay-process.ts'
import { expectBesideControl, partOf } from '../../support/runner/beside-control.ts'
import { byForm } from '../../support/runner/long-form.ts'
import { withinOwed } from '../../support/runner/real-time.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const CONNECTIONS = byForm(600, 600, 2000)
const RSS_GROWTH_MAX = 64 * 1024 * 1024
/** How long the relay waits for the headers, and for a whole request. */
const HEADERS_MS = 5000
const REQUEST_MS = 10_000
/** The number of pushes that are measured without load. */
const ALONE = 1000

const WARM_UP = byForm(4000, 4000, 8000)
/** A push is sent each time this many connections were opened. */
const LOT = 200

const HEAD = 'POST /webhooks/status HTTP/1.1\r\nHost: relay\r\n'
const SLOW = [
  { sends: '', drip: '', withinMs: HEADERS_MS },
  { sends: HEAD, drip: 'x', withinMs: HEADERS_MS },
  { sends: `${HEAD}x-service-hmac-sha256: ${'A'.repeat(43)}=\r\nContent-Length: 5000\r\n\r\n{`, drip: ' ', withinMs: REQUEST_MS },
] as const

/** Opens a connection whose request never ends, and resolves with how long it stayed open. */
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

test(`H15, F7: ${CONNECTIONS} connections without a whole request are closed, and pushes go on`, async () => {
  await using relay = await runRelay(writeConfig(temporaryFolder(), 'http://127.0.0.1:9'))
  const memory = async () => await metricOf(relay.internalUrl, 'process_resident_memory_bytes')
  let nth = 0
  const pushed = async () => (await push(relay.publicUrl, pushBody({ trackingIds: [String(10_000_000 + nth++)] }))).status
  // Warm the relay up first, because compiled code, the heap and caches need memory too.
  for (let lot = 0; lot < WARM_UP / 50; lot++) await Promise.all(Array.from({ length: 50 }, pushed))
  const before = await memory()
  let most = 0
  /** Pushes one after the other; resolves with how long each took. */
  const pushOn = async (goesOn: (count: number) => boolean) => {
    const tookMs: number[] = []
    while (goesOn(tookMs.length)) {
      const begunAtMs = performance.now()
      expect(await pushed()).toBe(200)
      tookMs.push(performance.now() - begunAtMs)
      if (tookMs.length % 50 === 0) most = Math.max(most, await memory())
    }
    return tookMs
  }

  const port = Number(new URL(relay.publicUrl).port)
  const besideSlow = async () => {
    const open: Promise<{ readonly tookMs: number; readonly owedMs: number }>[] = []
    for (let at = 0; at < CONNECTIONS; at++) {
      const slow = SLOW[at % SLOW.length] ?? SLOW[0]
      open.push(dawdle(port, slow).then((tookMs) => ({ tookMs, owedMs: slow.withinMs })))
      // The kernel drops connections when too many wait to be accepted. When this push is answered, the relay has accepted the earlier ones.
      if (at % LOT === LOT - 1) await pushed()
    }
    let left = true
    const closed = Promise.all(open).finally(() => {
      left = false
    })
    const tookMs = await pushOn(() => left)
    for (const one of await closed) expect(one.tookMs).toBeLessThan(withinOwed(one.owedMs))
    expect(tookMs.length).toBeGreaterThan(50)
    return partOf(tookMs, 0.99)
  }
  const seen = await expectBesideControl({
    control: async () => partOf(await pushOn((count) => count < ALONE), 0.99),
    fault: besideSlow,
    ratio: 2,
  })
  console.info(
    `F7: sent: ${CONNECTIONS} connections that send nothing, half a head, or half a body; p99 of a signed push ${seen}; memory ${Math.round(before / 1048576)} MB idle, ${Math.round(most / 1048576)} MB at most`,
  )
  expect(most - before).toBeLessThan(RSS_GROWTH_MAX)
})
