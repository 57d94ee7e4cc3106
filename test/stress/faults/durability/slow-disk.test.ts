import { join } from 'node:path'
import { expect } from 'vitest'
import { pushBody } from '../../../support/history/builders.ts'
import { ask, logIn, push } from '../../../support/relay/relay.ts'
import { metricOf } from '../../../support/relay/relay-process.ts'
import { expectBesideControl, partOf } from '../../../support/runner/beside-control.ts'
import { LONG } from '../../../support/runner/long-form.ts'
import { withinOwed } from '../../../support/runner/real-time.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { testWith } from '../../../support/runner/test-with.ts'
import { readStore } from '../../../support/store/simulated-disk.ts'
import { spawnTraced } from '../../../support/store/strace.ts'

/** Each commit takes a single push, so that few pushes make a queue. */
const LIMITS = { batch: 1, bodyBytesInFlight: '8MB' }
const WAITING_MAX = 64
/** The number of pushes at once. It exceeds the limit of the queue. */
const AT_ONCE = 200
const READS = 10
const PATIENCE_MS = 10_000
const MB = 1024 * 1024
/** How often `expectBesideControl` runs each measurement. */
const TURNS = 3
/** The garbage collector runs at any time, so a measurement of memory may be off by this much. */
const RSS_SLACK = 64 * MB
/** The number of syncs before the disk becomes slow. The start of the relay makes fewer, and pushes before the test make the rest. */
const START_SYNCS = 40
const DELAYS_MS = LONG ? [200, 5000] : [100]

const test = testWith('strace')

/** Each push has its own parcel, because a long history would need memory too. */
const pushesOf = (turn: number) =>
  Array.from({ length: AT_ONCE }, (_, at) =>
    pushBody({ location: 'x'.repeat(at % 2 === 0 ? 100_000 : 10), trackingIds: [`${turn}-${at}`] }),
  )

const memoryOf = async (internalUrl: string) => await metricOf(internalUrl, 'process_resident_memory_bytes')

/** Measures how much memory the same pushes need on a fast disk. */
async function growthWithoutFault(): Promise<number> {
  const relay = await spawnTraced(temporaryFolder(), { sections: { limits: LIMITS } })
  for (let at = 0; at < START_SYNCS; at++) await push(relay.publicUrl, pushBody({ location: `warm ${at}`, trackingIds: ['1001'] }))
  const before = await memoryOf(relay.internalUrl)
  let most = before
  for (let turn = 1; turn <= TURNS; turn++) {
    await Promise.all(pushesOf(turn).map((body) => push(relay.publicUrl, body)))
    most = Math.max(most, await memoryOf(relay.internalUrl))
  }
  await relay.kill()
  return most - before
}

interface Answer {
  readonly status: number
  readonly retryAfter: string | null
  readonly tookMs: number
  readonly body: Buffer
}

test.each(DELAYS_MS)('S9: with every sync %i ms late, pushes that would wait too long get 503, and reads go on', async (delayMs) => {
  const folder = temporaryFolder()
  const path = join(folder, 'relay.db')
  const files = ['', '-wal'].flatMap((suffix) => ['-P', `${path}${suffix}`])
  const late = `inject=fsync,fdatasync:delay_exit=${delayMs * 1000}:when=${START_SYNCS}+`
  const relay = await spawnTraced(folder, {
    strace: [...files, '-e', 'trace=fsync,fdatasync', '-e', late, '-o', join(folder, 'trace')],
    sections: { limits: LIMITS },
  })
  const token = await logIn(relay.internalUrl)
  const pushed = async (body: Buffer): Promise<Answer> => {
    const begunAtMs = performance.now()
    const { status, headers } = await push(relay.publicUrl, body)
    return { status, retryAfter: headers.get('retry-after'), tookMs: performance.now() - begunAtMs, body }
  }
  for (let at = 0, tookMs = 0; tookMs < delayMs; at++) {
    expect(at, 'pushes until the syncs are late').toBeLessThan(2 * START_SYNCS)
    tookMs = (await pushed(pushBody({ location: `warm ${at}`, trackingIds: ['1001'] }))).tookMs
  }
  const before = await memoryOf(relay.internalUrl)
  const answers: Answer[] = []
  let most = 0
  let mostWaiting = 0
  /** Reads one after the other, and resolves with the median time of a read. */
  const read = async () => {
    const readsMs: number[] = []
    for (let at = 0; at < READS; at++) {
      const askedAtMs = performance.now()
      expect((await ask(relay.internalUrl, token, '/v1/status/1001/latest')).status).toBe(200)
      readsMs.push(performance.now() - askedAtMs)
      most = Math.max(most, await memoryOf(relay.internalUrl))
      mostWaiting = Math.max(mostWaiting, await metricOf(relay.internalUrl, 'relay_commit_queue'))
    }
    return partOf(readsMs, 0.5)
  }
  let turn = 0
  const readBesidePushes = async () => {
    turn += 1
    const pending = Promise.all(pushesOf(turn).map(pushed))
    const readMs = await read()
    answers.push(...(await pending))
    return readMs
  }
  console.info(`S9: a read took ${await expectBesideControl({ control: read, fault: readBesidePushes, ratio: 3 })}`)
  const taken = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 503)
  expect([taken.length > 0, refused.length > 0, taken.length + refused.length]).toEqual([true, true, answers.length])
  expect([mostWaiting > 1, mostWaiting <= WAITING_MAX + 2], `${mostWaiting} waited at once`).toEqual([true, true])
  for (const { retryAfter } of refused) expect(Number(retryAfter)).toBeGreaterThan(0)
  // A push waits in the queue and then for its own commit. The database may sync once more by itself.
  expect(Math.max(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(withinOwed(PATIENCE_MS + 4 * delayMs))
  expect(Math.min(...taken.map(({ tookMs }) => tookMs))).toBeGreaterThanOrEqual(delayMs * 0.9)
  const [growth, control] = [Math.max(most, await memoryOf(relay.internalUrl)) - before, await growthWithoutFault()]
  console.info(`S9: memory grew by ${Math.round(growth / MB)} MB, and by ${Math.round(control / MB)} MB without the fault`)
  expect(growth).toBeLessThan(control + RSS_SLACK)
  await relay.kill()
  const { bodies, damage } = readStore(path)
  expect(damage).toBeNull()
  expect(taken.filter(({ body }) => !bodies.has(body.toString()))).toEqual([])
})
