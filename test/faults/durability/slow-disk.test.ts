import { join } from 'node:path'
import { expect } from 'vitest'
import { pushBody } from '../../support/builders.ts'
import { LONG } from '../../support/long-form.ts'
import { ask, logIn, push } from '../../support/relay.ts'
import { metricOf } from '../../support/relay-process.ts'
import { readStore } from '../../support/simulated-disk.ts'
import { spawnTraced } from '../../support/strace.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { testWith } from '../../support/test-with.ts'

/** One after the other is committed, so that few are enough to see what a queue does. */
const LIMITS = { batch: 1, bodyBytesInFlight: '8MB' }
const WAITING_MAX = 64
const AT_ONCE = 200
/** How long one may wait for its turn. */
const PATIENCE_MS = 10_000
const RSS_GROWTH_MAX = 150 * 1024 * 1024
/** A start makes fewer syncs than this; the pushes that warm up make the rest. */
const START_SYNCS = 40
/** The long delay by `npm run faults`. */
const DELAYS_MS = LONG ? [200, 5000] : [200]

const test = testWith('strace')

interface Answer {
  readonly status: number
  readonly retryAfter: string | null
  readonly tookMs: number
  readonly body: Buffer
}

test.each(DELAYS_MS)(
  'S9: with every sync %i ms late pushes take longer, what would wait too long is a 503, and neither memory nor reads suffer',
  async (delayMs) => {
    const folder = temporaryFolder()
    const path = join(folder, 'relay.db')
    const files = ['', '-wal'].flatMap((suffix) => ['-P', `${path}${suffix}`])
    const late = `inject=fsync,fdatasync:delay_exit=${delayMs * 1000}:when=${START_SYNCS}+`
    const relay = await spawnTraced(folder, {
      strace: [...files, '-e', 'trace=fsync,fdatasync', '-e', late, '-o', join(folder, 'trace')],
      sections: { limits: LIMITS },
    })
    const token = await logIn(relay.internalUrl)
    const pushed = async (location: string): Promise<Answer> => {
      const body = pushBody({ location, trackingIds: ['1001'] })
      const begunAtMs = performance.now()
      const { status, headers } = await push(relay.publicUrl, body)
      return { status, retryAfter: headers.get('retry-after'), tookMs: performance.now() - begunAtMs, body }
    }
    for (let at = 0, tookMs = 0; tookMs < delayMs; at++) {
      expect(at, 'pushes until the syncs are late').toBeLessThan(2 * START_SYNCS)
      tookMs = (await pushed(`warm ${at}`)).tookMs
    }
    const memory = async () => await metricOf(relay.internalUrl, 'process_resident_memory_bytes')
    const before = await memory()

    const pending = Promise.all(Array.from({ length: AT_ONCE }, (_, at) => pushed(`${at} ${'x'.repeat(at % 2 === 0 ? 100_000 : 0)}`)))
    const readsMs: number[] = []
    let most = 0
    let mostWaiting = 0
    for (let at = 0; at < 10; at++) {
      const askedAtMs = performance.now()
      expect((await ask(relay.internalUrl, token, '/v1/status/1001/latest')).status).toBe(200)
      readsMs.push(performance.now() - askedAtMs)
      most = Math.max(most, await memory())
      mostWaiting = Math.max(mostWaiting, await metricOf(relay.internalUrl, 'relay_commit_queue'))
    }
    const answers = await pending
    const taken = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status === 503)
    expect([taken.length > 0, refused.length > 0, taken.length + refused.length]).toEqual([true, true, AT_ONCE])
    expect([mostWaiting > 1, mostWaiting <= WAITING_MAX + 2], `${mostWaiting} waited at once`).toEqual([true, true])
    for (const { retryAfter } of refused) expect(Number(retryAfter)).toBeGreaterThan(0)
    // Its turn within the patience, and then its own commit; a sync of the database itself may come on top.
    const slowest = Math.max(...answers.map(({ tookMs }) => tookMs))
    expect(slowest).toBeLessThan(PATIENCE_MS + 4 * delayMs + 5000)
    expect(Math.min(...taken.map(({ tookMs }) => tookMs))).toBeGreaterThanOrEqual(delayMs * 0.9)
    expect(Math.max(most, await memory()) - before).toBeLessThan(RSS_GROWTH_MAX)
    // The middle one: a single read may be held up by the machine, not by the disk.
    expect(readsMs.toSorted((a, b) => a - b)[5]).toBeLessThan(delayMs)
    await relay.kill()
    const { bodies, damage } = readStore(path)
    expect(damage).toBeNull()
    expect(taken.filter(({ body }) => !bodies.has(body.toString()))).toEqual([])
  },
)
