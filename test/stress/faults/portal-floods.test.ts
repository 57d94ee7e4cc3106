import { expect, test } from 'vitest'
import { pushBody } from '../../support/history/builders.ts'
import { type FloodCount, startFlood } from '../../support/network/flood-process.ts'
import { cookiesIn } from '../../support/portal/live-stream.ts'
import { loggedInAt } from '../../support/portal/portal-visitor.ts'
import { ask, logIn, push, writeConfig } from '../../support/relay/relay.ts'
import { memoryOf, runRelay } from '../../support/relay/relay-process.ts'
import { expectBesideControl } from '../../support/runner/beside-control.ts'
import { LONG } from '../../support/runner/long-form.ts'
import { temporaryFolder } from '../../support/runner/temporary.ts'

const MB = 1024 * 1024
const CALLS = 60
/** The ratio to the control is large, because the senders of the flood use the same processors. */
const RATIO = 5

const get = (path: string, cookie: string) => `GET ${path} HTTP/1.1\r\nHost: relay\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`

const FLOODS = [
  { name: '50 readers of GET /docs/operating that reconnect', path: '/docs/operating', connections: 50, reads: true, comesAgain: true },
  { name: '300 requests for GET /docs whose senders read nothing', path: '/docs', connections: 300, reads: false, comesAgain: false },
  { name: '300 open pages of one app, which reconnect', path: '/live?page=%2F', connections: 300, reads: true, comesAgain: true },
  { name: '50 readers of GET /docs that reconnect', path: '/docs', connections: 50, reads: true, comesAgain: true },
]

test.each(FLOODS.slice(0, LONG ? FLOODS.length : 3))(
  'beside $name, pushes and reads go on, and memory stays bounded',
  async ({ name, path, ...sent }) => {
    await using relay = await runRelay(writeConfig(temporaryFolder(), 'http://127.0.0.1:9', { serve: { fetchUnknown: false } }))
    const { publicUrl, internalUrl } = relay
    const token = await logIn(internalUrl)
    const visitor = await loggedInAt(internalUrl)
    const request = get(path, cookiesIn(visitor.jar))
    const pid = relay.process.pid ?? 0
    let nth = 0
    let mostBytes = 0
    const load = async () => {
      const begunAtMs = performance.now()
      for (let calls = 0; calls < CALLS; calls++) {
        expect((await push(publicUrl, pushBody({ trackingIds: [String(10_000_000 + nth++)] }))).status).toBe(200)
        expect((await ask(internalUrl, token, '/v1/status/10000000/latest')).status).toBe(200)
        mostBytes = Math.max(mostBytes, memoryOf(pid).residentBytes)
      }
      return performance.now() - begunAtMs
    }
    // The first request of a page loads files and compiles code, so make it before the measurement.
    await visitor.get('/docs')
    for (let warm = 0; warm < 10; warm++) await load()
    const idleBytes = memoryOf(pid).residentBytes
    let count: FloodCount | null = null
    const beside = async () => {
      await using flood = await startFlood({ ...sent, port: Number(new URL(internalUrl).port), request, times: 1 })
      const tookMs = await load()
      count = await flood.count()
      return tookMs
    }
    const seen = await expectBesideControl({ control: load, fault: beside, ratio: RATIO })
    console.info(
      `${name}: ${JSON.stringify(count)}; ${2 * CALLS} calls took ${seen}; grew by ${Math.round((mostBytes - idleBytes) / MB)} MB`,
    )
    expect(mostBytes - idleBytes).toBeLessThan(100 * MB)
    expect((await visitor.get('/')).status).toBe(200)
  },
)
