import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { freePort } from '../../src/trial/demo/postgres/throwaway-server.ts'
import { startSandbox } from '../../src/trial/sandbox/sandbox.ts'
import { pushBody } from '../support/history/builders.ts'
import { ADMIN, ask, CARRIER_LOGIN, logIn, push, SHARED_KEY, startTestRelay } from '../support/relay/relay.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { storedRows } from '../support/store/stored-rows.ts'

const things = new AsyncDisposableStack()
afterAll(() => things.disposeAsync())

/** Starts three relays in a circle, A → B → C → A. The only endpoint of each relay is the webhook of the next relay, with the same shared key. */
async function startCircle(carrierOfA: string) {
  const root = mkdtempSync(join(tmpdir(), 'parcel-relay-'))
  things.defer(() => rmSync(root, { recursive: true, force: true }))
  const names = ['a', 'b', 'c']
  const ports = await Promise.all(names.map(freePort))
  const circle = await Promise.all(
    names.map(async (name, nth) => {
      const folder = join(root, name)
      mkdirSync(folder)
      const next = ports[(nth + 1) % names.length] ?? 0
      const relay = await startTestRelay(folder, nth === 0 ? carrierOfA : NO_CARRIER, {
        listen: { public: { host: '127.0.0.1', port: ports[nth] }, internal: { host: '127.0.0.1', port: 0 } },
        serve: { fetchUnknown: nth === 0, fetchMissingLanguage: nth === 0 },
        endpoints: [{ name: 'next', url: `http://127.0.0.1:${next}/webhooks/status`, sharedKey: SHARED_KEY }],
        delivery: { schedule: ['50ms', '100ms', '200ms'], allowNetworks: ['127.0.0.0/8'] },
      })
      things.defer(() => relay.stop())
      const token = await logIn(relay.internalUrl, ADMIN)
      return {
        ...relay,
        token,
        all: async (id: string) => await (await ask(relay.internalUrl, token, `/v1/status/${id}/all`)).text(),
        count: async () => (await storedRows<Counts>(relay.databasePath, COUNTS))[0],
      }
    }),
  )
  const [a, b, c] = circle
  if (a === undefined || b === undefined || c === undefined) throw new Error('three relays were started')
  return { a, b, c }
}

const COUNTS = `
  select (select count(*) from inbox) as pushes, (select coalesce(sum(duplicates), 0) from inbox) as repeats,
    (select count(*) from feed where kind = 0) as entries, (select count(*) from delivery where state < 2) as waiting,
    (select count(*) from delivery where state = 2) as delivered`

interface Counts {
  readonly pushes: number
  readonly repeats: number
  readonly entries: number
  readonly waiting: number
  readonly delivered: number
}

let sandbox: Awaited<ReturnType<typeof startSandbox>>
let a: Relay
let b: Relay
let c: Relay
type Relay = Awaited<ReturnType<typeof startCircle>>['a']

beforeAll(async () => {
  sandbox = await startSandbox({ speed: 0, parcels: 2, seed: 3, hard: 0, sharedKey: SHARED_KEY, ...CARRIER_LOGIN })
  things.defer(() => sandbox.stop())
  await sandbox.finish()
  ;({ a, b, c } = await startCircle(sandbox.url))
})

const counts = () => Promise.all([a, b, c].map((relay) => relay.count()))

/** The returned function tells by how much the counts of each relay have risen since `countsFromNow` was called. */
async function countsFromNow() {
  const before = await counts()
  const since = (after: Counts | undefined, nth: number) =>
    Object.fromEntries(Object.entries(after ?? {}).map(([name, count]) => [name, count - Number(Object(before[nth])[name])]))
  return async () => (await counts()).map(since)
}

test('three relays in a circle end with equal histories, each event going round once', async () => {
  const counted = await countsFromNow()
  const bodies = Array.from({ length: 12 }, (_, nth) =>
    pushBody({ eventTime: `2026-03-01T10:${String(nth + 10)}:00.250Z`, trackingIds: [String(1001 + (nth % 3))] }),
  )
  for (const [nth, body] of bodies.entries()) await push([a, b, c][nth % 3]?.publicUrl ?? '', body)

  // Each relay keeps and forwards each push once. The relay that got the push from the test gets it again, and counts it as a repeat.
  const round = { pushes: 12, entries: 12, delivered: 12, waiting: 0 }
  await vi.waitFor(async () => expect(await counted()).toMatchObject([round, round, round]))
  expect((await counted()).map(({ repeats }) => repeats)).toEqual([4, 4, 4])
  for (const id of ['1001', '1002', '1003']) {
    const history = await a.all(id)
    expect(history.match(/eventTimestamp/g)).toHaveLength(4)
    expect([await b.all(id), await c.all(id)]).toEqual([history, history])
  }
})

test('7.1: a lost first push that a relay finds by a poll goes round once, without backfill', async () => {
  const counted = await countsFromNow()
  const [parcel] = sandbox.world.parcels()
  const number = parcel?.trackingNumber ?? ''
  // The relay does not know the parcel, and no push names it, so its own poll of the parcel is all it learns from.
  await order('faults', { loss: 1, reorder: 0 })
  await order('scan', { trackingNumber: number, status: 'TerminalUpdated', detailedStatus: 'ParcelUpdated', location: 'Kiruna' })
  const polled = await a.all(number)
  const times = Array.from(polled.matchAll(/"eventTimestamp":"([^"]*)"/g), ([, time = '']) => Date.parse(time))
  const [{ beganAtMs } = { beganAtMs: 0 }] = await storedRows<{ beganAtMs: number }>(
    a.databasePath,
    'select began_at_ms as beganAtMs from endpoint',
  )
  const since = times.filter((atMs) => atMs >= beganAtMs).length
  expect(since).toBeGreaterThan(0)
  expect(since).toBeLessThan(times.length)

  const round = { pushes: since, repeats: 0, entries: since, delivered: since, waiting: 0 }
  await vi.waitFor(async () => expect(await counted()).toMatchObject([{ ...round, entries: times.length }, round, round]))
  expect(await a.all(number)).toBe(polled)
  const [trackingId = ''] = JSON.parse(polled).trackingIds
  expect(await b.all(trackingId)).toBe(await c.all(trackingId))
  expect(await b.all(trackingId)).toContain('TerminalUpdated')
})

async function order(what: string, body: unknown): Promise<void> {
  const answer = await fetch(`${sandbox.url}/sandbox/${what}`, { method: 'POST', body: JSON.stringify(body) })
  expect(answer.status).toBeLessThan(300)
}
