import { createServer } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DAY_MS, dayIn } from '../../../src/core/domain/calendar.ts'
import { parseAllAnswer } from '../../../src/core/domain/history/pull-response.ts'
import type { Engine } from '../../../src/core/store/contract.ts'
import type { CountName } from '../../../src/insight/report/report.rules.ts'
import { createReports } from '../../../src/insight/report/report.ts'
import type { PushRecord } from '../../../src/trial/sandbox/pusher.ts'
import { startSandbox } from '../../../src/trial/sandbox/sandbox.ts'
import { recordOptions } from '../../support/history/policy.ts'
import { listenInTest } from '../../support/network/listen.ts'
import { HOUR_MS, MINUTE_MS } from '../../support/runner/constants.ts'
import { engines } from '../../support/store/engines.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

const ZONE = 'Europe/Stockholm'
const OCTOBER = Date.UTC(2026, 8, 30, 22)
const DAYS = 31
const STATUSES = ['Created', 'Ingested', 'TerminalArrived', 'TerminalUpdated', 'DeliveryStarted', 'DeliverySucceeded']

/** Lets a sandbox push a month of scans into a store, and polls the known parcels of each day. Pushes of a day arrive at one time of the store's clock. */
async function simulateMonth(engine: Engine) {
  const sandbox = await startSandbox({
    parcels: 0,
    speed: 0,
    seed: 5,
    anchorMs: OCTOBER,
    faults: { loss: 0.06, duplicates: 0.05, reorder: 6 },
  })
  onTestFinished(() => sandbox.stop())
  const store = await openStore(OCTOBER, engine)
  const receive = async (request: AsyncIterable<Buffer>) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    await store.record(incomingPush(Buffer.concat(chunks), store.now()))
  }
  const receiver = createServer((request, response) => {
    void receive(request).then(
      () => response.end(),
      () => response.writeHead(500).end(),
    )
  })
  sandbox.setWebhookUrls([`http://127.0.0.1:${await listenInTest(receiver)}/`])
  const known = new Set<string>()
  const arrivedAtMs = new Map<string, number>()
  for (let day = 0; day < DAYS; day++) {
    const startMs = OCTOBER + day * DAY_MS + 3 * HOUR_MS
    const numbers = [0, 1, 2, 3].map((nth) => `AB${100_000_000 + day * 10 + nth}SE`)
    for (const [nth, trackingNumber] of numbers.entries())
      sandbox.addParcel({ trackingNumber, trackingIds: [String(370_000_000_000 + day * 10 + nth)] })
    for (const [at, status] of STATUSES.entries())
      for (const [nth, trackingNumber] of numbers.entries())
        sandbox.scan(trackingNumber, { status, atMs: startMs + at * MINUTE_MS - nth * (day % 5) * 2 * MINUTE_MS })
    store.setClock(startMs + 6 * MINUTE_MS)
    for (const trackingNumber of numbers) arrivedAtMs.set(trackingNumber, store.now())
    await sandbox.push({ body: `no event ${day}` })
    await sandbox.settle()
    store.setClock(startMs + 6 * HOUR_MS)
    for (const trackingNumber of numbers) {
      const parcel = sandbox.world.parcel(trackingNumber)
      if (parcel === null || (await store.reads.inspectParcel(parcel.trackingIds[0] ?? '')) === null) continue
      known.add(trackingNumber)
      const asked = { asked: trackingNumber, language: 'en', contentLanguage: 'en', askedAtMs: store.now() }
      const reading = parseAllAnswer(Buffer.from(parcel.answers.en), asked)
      if (!reading.ok) throw new Error(reading.reason)
      await store.record({ kind: 'poll', observation: reading.observation, watch: false })
    }
    store.setClock(startMs + 7 * HOUR_MS)
    await store.writes.settleMissedPushes(store.now())
  }
  return { sandbox, store, known, arrivedAtMs }
}

/** Counts what the sandbox did, by its own record of each push. */
function recount({ sandbox, known, arrivedAtMs }: Awaited<ReturnType<typeof simulateMonth>>) {
  const days = new Map<string, Partial<Record<CountName, number>>>()
  const add = (atMs: number, name: CountName, count = 1) => {
    const day = new Date(dayIn(ZONE, atMs)).toISOString().slice(0, 10)
    const counts = days.get(day) ?? {}
    counts[name] = (counts[name] ?? 0) + count
    days.set(day, counts)
  }
  const eventAt = ({ body }: PushRecord) => Date.parse(JSON.parse(body).eventTime)
  for (const { trackingNumber, pushes } of sandbox.world.parcels()) {
    const arrivedMs = arrivedAtMs.get(trackingNumber) ?? 0
    const sent = pushes.filter(({ fate }) => fate === 'sent')
    const knownFromMs = Math.min(...sent.map(eventAt))
    for (const push of pushes) {
      const atMs = eventAt(push)
      if (push.fate === 'lost' && known.has(trackingNumber) && atMs >= knownFromMs) add(atMs, 'lost')
      if (push.fate !== 'sent') continue
      add(atMs, 'pushed')
      if (arrivedMs - atMs > recordOptions.missedPushGraceMs) add(atMs, 'late')
      if (push.copies > 1) add(arrivedMs, 'repeated', push.copies - 1)
      if (push.reordered) add(arrivedMs, 'outOfOrder')
    }
  }
  for (let day = 0; day < DAYS; day++) add(OCTOBER + day * DAY_MS + 3 * HOUR_MS, 'quarantined')
  return days
}

describe.each(engines)('a month of the sandbox on $name', (engine) => {
  test('10.2: the report of each day equals a recount from the sandbox’s own record', async () => {
    const month = await simulateMonth(engine)
    const { store } = month
    const settings = () => ({ zone: ZONE, retention: { reportsMs: 1830 * DAY_MS }, poll: { missedPushGraceMs: 0 } })
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const report = await createReports({
      ...store,
      write: store.writes,
      clock: { now: store.now, monotonic: () => 0 },
      log,
      settings,
    }).read('2026-10')
    const wanted = recount(month)
    const shown: readonly CountName[] = ['pushed', 'late', 'lost', 'repeated', 'reworded', 'outOfOrder', 'quarantined', 'disagreed']
    for (const { day, counts } of report.days)
      expect([day, ...shown.map((name) => `${name} ${counts[name]}`)]).toEqual([
        day,
        ...shown.map((name) => `${name} ${wanted.get(day)?.[name] ?? 0}`),
      ])
    expect(report.counts.lost).toBeGreaterThan(10)
    expect(report.counts.outOfOrder).toBeGreaterThan(5)
    expect(report.counts.repeated).toBeGreaterThan(10)
    expect(report.counts.late).toBeGreaterThan(50)
  })
})
