import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { CLAIMS_PER_ATTEMPT_ON_SERVER } from '../../src/core/domain/delivery/delivery.ts'
import { breaches } from '../support/delivery/relaying-ledger.ts'
import { repeats, settledLedger } from '../support/delivery/settled-ledger.ts'
import { type MoodyReceiver, startMoodyReceiver } from '../support/network/moody-receiver.ts'
import { type Answered, distinctPushes, startLoad } from '../support/network/push-load.ts'
import { openTcpProxy, startTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.ts'
import { textOf, untilSent } from '../support/relay/caught-up.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push, type Sections, writeConfig } from '../support/relay/relay.ts'
import { type ReplicaProcess, startReplica, untilShared } from '../support/relay/replica-processes.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm, LONG } from '../support/runner/long-form.ts'
import { withinOwed } from '../support/runner/real-time.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { takeConnections } from '../support/store/postgres-client.ts'
import { createDatabase, startOwnServer } from '../support/store/postgres-database.ts'

const PAUSES_MS = LONG ? [60_000, 7000, 7000, 7000, 7000, 7000] : [8000]
const SWALLOWED_MS = LONG ? 10_000 : 6000
/** Outside of `npm run faults`, `test/stress/e2e/replicas.long.test.ts` tests kills of replicas and restarts of the server. */
const SIGNALS = byForm(['SIGTERM'] as const, ['SIGTERM', 'SIGKILL'] as const)
const OWED_MS = { SIGTERM: 1000, SIGKILL: 10_000 }
const PARCELS = 19
/** The pause between two pushes, so that the endpoints keep up. */
const REST_MS = byForm(150, 20)
const PER_ENDPOINT = 4
const KEY = 'the-key-of-these-endpoints'
const LAPSED = 'the lease of this replica has run out: it stops everything that only one replica may do'
const NAMES = ['first', 'second', 'third', 'fourth']

/** Starts four slow endpoints, so that some attempt is always running. Two of them close the connection after each attempt. */
async function startEndpoints(stack: AsyncDisposableStack, afterMs = 15): Promise<ReadonlyMap<string, MoodyReceiver>> {
  const receivers = new Map<string, MoodyReceiver>()
  for (const [at, name] of NAMES.entries()) {
    receivers.set(name, stack.use(await startMoodyReceiver(KEY, () => ({ status: 200, afterMs, closes: at % 2 === 0 }))))
  }
  return receivers
}

function sectionsFor(receivers: ReadonlyMap<string, MoodyReceiver>): Sections {
  return {
    endpoints: [...receivers].map(([name, { url }]) => ({ name, url, sharedKey: KEY })),
    delivery: { schedule: ['50ms', '100ms', '200ms'], timeout: '3s', perEndpoint: PER_ENDPOINT, allowNetworks: ['127.0.0.0/8'] },
  }
}

async function start(url: string, sections: Sections, folder: string): Promise<ReplicaProcess> {
  return await startReplica(writeConfig(folder, NO_CARRIER, { ...sections, ...(await onPostgres(url)) }))
}

const rolesOf = async (replica: ReplicaProcess, asked = replica): Promise<readonly string[]> =>
  (await asked.replicas()).find(({ name }) => name.endsWith(`/${replica.process.pid}`))?.roles ?? []

/** Resolves with the milliseconds until one replica held all roles. */
async function untilHoldsAll(replica: ReplicaProcess, endpoints: number): Promise<number> {
  const fromMs = performance.now()
  await vi.waitFor(async () => expect(await rolesOf(replica)).toHaveLength(endpoints + 2), { timeout: 60_000, interval: 50 })
  return Math.round(performance.now() - fromMs)
}

/** Expects that every acknowledged push arrives at every endpoint in order, and only once unless a fault interrupted its sending. */
async function expectRelayed(replica: ReplicaProcess): Promise<void> {
  const acknowledged = answers.filter(({ status }) => status === 200).map(({ body }) => body)
  expect(acknowledged.length).toBeGreaterThan(0)
  expect(answers.filter(({ status }) => ![200, 503, null].includes(status))).toEqual([])
  // Every delivery ends without another push or an operator's order.
  await untilSent(replica.asker)
  const endpoints = await settledLedger(replica, receivers)
  expect(breaches({ acknowledged, parcelOf: (body) => pushes.parcels([body])[0] ?? '', endpoints })).toEqual([])
  const repeated = endpoints.map(repeats)
  expect(Math.max(...repeated)).toBeLessThanOrEqual(faults * PER_ENDPOINT * CLAIMS_PER_ATTEMPT_ON_SERVER)
  const histories = await Promise.all(pushes.parcels(acknowledged).map((id) => textOf(replica.asker, id, 'all', 'en')))
  const all = histories.join('\n')
  expect(acknowledged.filter((body) => !all.includes(pushes.entryOf(body)))).toEqual([])
  console.log(`${acknowledged.length} pushes, repeated deliveries: ${repeated.join()}`)
}

/** The tests share two replicas on one server. The server connection of one replica can be cut. */
const stack = new AsyncDisposableStack()
let receivers: ReadonlyMap<string, MoodyReceiver>
let server: Awaited<ReturnType<typeof startOwnServer>>
let proxy: TcpProxy
let one: ReplicaProcess
let other: ReplicaProcess
let startOther: () => Promise<ReplicaProcess>
const pushes = distinctPushes(PARCELS)
/** The answers to the pushes of all tests so far. */
const answers: Answered[] = []
let faults = 0

beforeAll(async () => {
  server = stack.use(await startOwnServer({ settings: { max_connections: '60' } }))
  receivers = await startEndpoints(stack)
  const through = new URL(server.url())
  proxy = stack.use(await openTcpProxy(Number(through.port)))
  through.port = String(proxy.port)
  const sections = sectionsFor(receivers)
  const folderOf = (name: string) => {
    const folder = mkdtempSync(join(tmpdir(), `parcel-relay-${name}-`))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    return folder
  }
  const folder = folderOf('other')
  startOther = async () => stack.use(await start(through.href, sections, folder))
  one = stack.use(await start(server.url(), sections, folderOf('one')))
  other = await startOther()
})
afterAll(() => stack.disposeAsync())

const loadOn = ({ publicUrl }: ReplicaProcess) => startLoad(publicUrl, 2, pushes.next, { restMs: REST_MS })

// The last test ends one of the replicas, so keep this order.
describe('two replicas', { shuffle: false }, () => {
  test(`a replica that is paused for ${PAUSES_MS.map((ms) => ms / 1000).join(', ')} s loses its roles and breaks no order`, async () => {
    const load = loadOn(one)
    const takenMs: number[] = []
    for (const pauseMs of PAUSES_MS) {
      await untilShared(one, 2, NAMES.length)
      const before = (await other.itself())?.id
      const said = other.logged(
        'this replica counts as dead, because it was not seen for a while or the database has lost commits; it joins again',
      )
      other.process.kill('SIGSTOP')
      const pausedAtMs = performance.now()
      takenMs.push(await untilHoldsAll(one, NAMES.length))
      const isOver = () => expect(performance.now() - pausedAtMs).toBeGreaterThan(pauseMs)
      await vi.waitFor(isOver, { timeout: pauseMs + 60_000, interval: 100 })
      other.process.kill('SIGCONT')
      await said
      await untilShared(one, 2, NAMES.length)
      expect((await other.itself())?.id).not.toBe(before)
    }
    answers.push(...(await load.stop()))
    console.log(`taken over ${takenMs.join()} ms after a pause began`)
    expect(Math.max(...takenMs)).toBeLessThan(withinOwed(10_000))
    faults += 2 * PAUSES_MS.length
    await expectRelayed(one)
  })

  test(`a replica cut off for ${SWALLOWED_MS / 1000} s is replaced, and takes part again within seconds`, async () => {
    await untilShared(one, 2, NAMES.length)
    const loads = [one, other].map(loadOn)
    await loads[1]?.untilAnswered(20)
    proxy.swallow()
    const swallowedAtMs = performance.now()
    const takenMs = await untilHoldsAll(one, NAMES.length)
    expect(takenMs).toBeLessThan(withinOwed(10_000))
    await vi.waitFor(() => expect(performance.now() - swallowedAtMs).toBeGreaterThan(SWALLOWED_MS), { timeout: 60_000, interval: 100 })
    proxy.flow()
    const fromMs = performance.now()
    await expect.poll(async () => (await fetch(`${other.internalUrl}/readyz`)).status, { timeout: 60_000, interval: 50 }).toBe(200)
    const readyMs = Math.round(performance.now() - fromMs)
    await untilShared(one, 2, NAMES.length)
    const sharedMs = Math.round(performance.now() - fromMs)
    answers.push(...(await Promise.all(loads.map((load) => load.stop()))).flat())
    console.log(`taken over after ${takenMs} ms; ready ${readyMs} ms and roles shared ${sharedMs} ms after the end`)
    expect(readyMs).toBeLessThan(withinOwed(5000))
    faults += 2
    await expectRelayed(one)
  })

  test(`${byForm('', 'after a restart of the server and ')}without a server for longer than a lease, nothing is lost`, async () => {
    const replicas = [one, other]
    await untilShared(one, 2, NAMES.length)
    const restart = async () => {
      await server.stop('immediate')
      return () => server.start()
    }
    const withoutConnections = [() => takeConnections(server.url()), 6000] as const
    for (const [breakServer, lastingMs] of byForm([withoutConnections], [[restart, 0] as const, withoutConnections])) {
      const loads = replicas.map(loadOn)
      await Promise.all(loads.map((load) => load.untilAnswered(20)))
      const mend = await breakServer()
      const refused = async () => (await push(other.publicUrl, pushes.next())).status
      await expect.poll(refused, { timeout: 60_000, interval: 100 }).toBe(503)
      const refusedAtMs = performance.now()
      // A replica may have kept a connection. Only a replica without any connection loses its lease.
      const isOver = () => expect(performance.now() - refusedAtMs).toBeGreaterThan(lastingMs)
      await vi.waitFor(isOver, { timeout: lastingMs + 60_000, interval: 100 })
      await mend()
      const fromMs = performance.now()
      for (const { internalUrl } of replicas) {
        await expect.poll(async () => (await fetch(`${internalUrl}/readyz`)).status, { timeout: 60_000, interval: 50 }).toBe(200)
      }
      console.log(`both ready ${Math.round(performance.now() - fromMs)} ms after the end`)
      for (const load of loads) answers.push(...(await load.stop()))
      await untilShared(one, 2, NAMES.length)
    }
    faults += byForm(2, 4)
    await expectRelayed(other)
  })

  test('the other replica takes over within a second of a stop, and within ten of a kill', async () => {
    const load = loadOn(one)
    const tookMs: Record<string, number> = {}
    for (const signal of SIGNALS) {
      if (other.process.signalCode !== null || other.process.exitCode !== null) other = await startOther()
      await untilShared(one, 2, NAMES.length)
      other.process.kill(signal)
      const all = untilHoldsAll(one, NAMES.length)
      await other.ended
      tookMs[signal] = await all
    }
    answers.push(...(await load.stop()))
    console.log(`handed over: ${JSON.stringify(tookMs)}`)
    for (const signal of SIGNALS) expect(tookMs[signal], signal).toBeLessThan(withinOwed(OWED_MS[signal]))
    faults += 2
    await expectRelayed(one)
  })
})

// `membership.test.ts` tests this in `npm test`, without a server.
test.each(LONG ? ['swallows everything'] : [])('a single relay whose network %s for longer than its lease resumes by itself', async () => {
  await using own = new AsyncDisposableStack()
  const receiver = own.use(await startMoodyReceiver(KEY, () => ({ status: 200, afterMs: 100 })))
  const { url } = await createDatabase('nothing')
  const network = await startTcpProxy(Number(new URL(url).port))
  const through = new URL(url)
  through.port = String(network.port)
  const relay = own.use(
    await start(
      through.href,
      {
        endpoints: [{ name: 'first', url: receiver.url, sharedKey: KEY, concurrency: 1 }],
        delivery: { allowNetworks: ['127.0.0.0/8'] },
      },
      temporaryFolder(),
    ),
  )
  await untilHoldsAll(relay, 1)
  const others = distinctPushes(60)
  const bodies = Array.from({ length: 60 }, () => others.next())
  for (const body of bodies) expect((await push(relay.publicUrl, body)).status).toBe(200)
  const lapsed = relay.logged(LAPSED)
  network.swallow()
  await lapsed
  const before = receiver.arrivals.length
  expect(before).toBeLessThan(60)
  network.flow()
  const fromMs = performance.now()
  await vi.waitFor(() => expect(receiver.arrivals.length).toBeGreaterThan(before + 1), { timeout: 60_000, interval: 50 })
  console.log(`it goes on ${Math.round(performance.now() - fromMs)} ms after the end`)
  await vi.waitFor(() => expect(new Set(receiver.arrivals.map(({ body }) => body)).size).toBe(60), { timeout: 60_000 })
})
