import { join } from 'node:path'
import { expect } from 'vitest'
import { expectBesideControl, partOf } from '../../support/beside-control.ts'
import { pushBody } from '../../support/builders.ts'
import { byForm, SHORT } from '../../support/long-form.ts'
import { withinOwed } from '../../support/real-time.ts'
import { ask, logIn, push } from '../../support/relay.ts'
import { metricOf } from '../../support/relay-process.ts'
import { readStore } from '../../support/simulated-disk.ts'
import { spawnTraced } from '../../support/strace.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { testWith } from '../../support/test-with.ts'

/** One after the other is committed, so that few are enough to see what a queue does. */
const LIMITS = { batch: 1, bodyBytesInFlight: '8MB' }
const WAITING_MAX = 64
/** More than may wait, but in the short form. */
const AT_ONCE = byForm(20, 200)
const READS = 10
/** How long one may wait for its turn. */
const PATIENCE_MS = 10_000
/** Three times what three rounds of such pushes were seen to leave. */
const RSS_GROWTH_MAX = 160 * 1024 * 1024
/** A start makes fewer syncs than this; the pushes that warm up make the rest. */
const START_SYNCS = 40
const DELAYS_MS = byForm([200], [100], [200, 5000])

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
    const pushed = async (trackingId: string, location: string): Promise<Answer> => {
      const body = pushBody({ location, trackingIds: [trackingId] })
      const begunAtMs = performance.now()
      const { status, headers } = await push(relay.publicUrl, body)
      return { status, retryAfter: headers.get('retry-after'), tookMs: performance.now() - begunAtMs, body }
    }
    for (let at = 0, tookMs = 0; tookMs < delayMs; at++) {
      expect(at, 'pushes until the syncs are late').toBeLessThan(2 * START_SYNCS)
      tookMs = (await pushed('1001', `warm ${at}`)).tookMs
    }
    const memory = async () => await metricOf(relay.internalUrl, 'process_resident_memory_bytes')
    const before = await memory()
    const answers: Answer[] = []
    let most = 0
    let mostWaiting = 0
    /** Reads one after the other; resolves with the median of what one took. */
    const read = async () => {
      const readsMs: number[] = []
      for (let at = 0; at < READS; at++) {
        const askedAtMs = performance.now()
        expect((await ask(relay.internalUrl, token, '/v1/status/1001/latest')).status).toBe(200)
        readsMs.push(performance.now() - askedAtMs)
        most = Math.max(most, await memory())
        mostWaiting = Math.max(mostWaiting, await metricOf(relay.internalUrl, 'relay_commit_queue'))
      }
      return partOf(readsMs, 0.5)
    }
    let turn = 0
    const readBesidePushes = async () => {
      turn += 1
      // Each its own parcel: the memory that one long history needs is not what is measured.
      const pending = Promise.all(
        Array.from({ length: AT_ONCE }, (_, at) => pushed(`${turn}-${at}`, 'x'.repeat(at % 2 === 0 ? 100_000 : 10))),
      )
      const readMs = await read()
      answers.push(...(await pending))
      return readMs
    }
    if (SHORT) await readBesidePushes()
    else console.info(`S9: a read took ${await expectBesideControl({ control: read, fault: readBesidePushes, ratio: 3 })}`)
    const taken = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status === 503)
    // As few as the short form has are refused only on a machine so slow that the last one's turn comes too late.
    expect([taken.length > 0, SHORT || refused.length > 0, taken.length + refused.length]).toEqual([true, true, answers.length])
    expect([mostWaiting > 1, mostWaiting <= WAITING_MAX + 2], `${mostWaiting} waited at once`).toEqual([true, true])
    for (const { retryAfter } of refused) expect(Number(retryAfter)).toBeGreaterThan(0)
    // Its turn within the patience, and then its own commit; a sync of the database itself may come on top.
    expect(Math.max(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(withinOwed(PATIENCE_MS + 4 * delayMs))
    expect(Math.min(...taken.map(({ tookMs }) => tookMs))).toBeGreaterThanOrEqual(delayMs * 0.9)
    if (!SHORT) expect(Math.max(most, await memory()) - before).toBeLessThan(RSS_GROWTH_MAX)
    await relay.kill()
    const { bodies, damage } = readStore(path)
    expect(damage).toBeNull()
    expect(taken.filter(({ body }) => !bodies.has(body.toString()))).toEqual([])
  },
)
