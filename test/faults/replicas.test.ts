import { expect, test, vi } from 'vitest'
import { startPostgres } from '../../src/cli/demo/postgres/throwaway-server.ts'
import { CLAIMS_PER_ATTEMPT_ON_SERVER } from '../../src/domain/delivery/delivery.ts'
import { textOf, untilSent } from '../support/caught-up.ts'
import { LONG } from '../support/long-form.ts'
import { type MoodyReceiver, startMoodyReceiver } from '../support/moody-receiver.ts'
import { onPostgres } from '../support/on-postgres.ts'
import { takeConnections } from '../support/postgres-client.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { type Answered, distinctPushes, startLoad } from '../support/push-load.ts'
import { withinOwed } from '../support/real-time.ts'
import { push, type Sections, writeConfig } from '../support/relay.ts'
import { breaches } from '../support/relaying-ledger.ts'
import { type ReplicaProcess, startReplica, untilShared } from '../support/replica-processes.ts'
import { repeats, settledLedger } from '../support/settled-ledger.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { temporaryFolder } from '../support/temporary.ts'

const PAUSES_MS = LONG ? [60_000, 7000, 7000, 7000, 7000, 7000] : [8000]
const SWALLOWED_MS = LONG ? 10_000 : 6000
const PARCELS = 19
/** Between two pushes, so that the endpoints keep up. */
const REST_MS = 20
const PER_ENDPOINT = 4
const KEY = 'the-key-of-these-endpoints'
/** Nobody listens there. */
const NO_CARRIER = 'http://127.0.0.1:9'
const LAPSED = 'the lease of this replica has run out: it stops everything that only one replica may do'
const NAMES = ['first', 'second', 'third', 'fourth']

/** Four endpoints that take a while, so that something is under way at any time; to some each post has to connect anew. */
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

async function start(url: string, sections: Sections, more: NodeJS.ProcessEnv = {}): Promise<ReplicaProcess> {
  return await startReplica(writeConfig(temporaryFolder(), NO_CARRIER, { ...sections, ...(await onPostgres(url)) }), more)
}

const rolesOf = async (replica: ReplicaProcess, asked = replica): Promise<readonly string[]> =>
  (await asked.replicas()).find(({ name }) => name.endsWith(`/${replica.process.pid}`))?.roles ?? []

/** Resolves with how long it took until one replica held everything. */
async function untilHoldsAll(replica: ReplicaProcess, endpoints: number): Promise<number> {
  const fromMs = performance.now()
  await vi.waitFor(async () => expect(await rolesOf(replica)).toHaveLength(endpoints + 2), { timeout: 60_000, interval: 20 })
  return Math.round(performance.now() - fromMs)
}

/** That all that was acknowledged arrives everywhere, in order, and once but for what was in flight at so many faults. */
async function expectRelayed(
  replica: ReplicaProcess,
  {
    receivers,
    pushes,
    answers,
    faults,
  }: {
    readonly receivers: ReadonlyMap<string, MoodyReceiver>
    readonly pushes: ReturnType<typeof distinctPushes>
    readonly answers: readonly Answered[]
    readonly faults: number
  },
): Promise<void> {
  const acknowledged = answers.filter(({ status }) => status === 200).map(({ body }) => body)
  expect(acknowledged.length).toBeGreaterThan(0)
  expect(answers.filter(({ status }) => ![200, 503, null].includes(status))).toEqual([])
  // Nothing is left behind that only more pushes or an operator would set going.
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

test(`a replica that stands still for ${PAUSES_MS.map((ms) => ms / 1000).join(', ')} s has lost its roles: others take over, and when it goes on it overtakes nothing and says that it was declared dead`, async () => {
  await using stack = new AsyncDisposableStack()
  const receivers = await startEndpoints(stack)
  const { url } = await createDatabase('nothing')
  const sections = sectionsFor(receivers)
  const [one, other] = [stack.use(await start(url, sections)), stack.use(await start(url, sections))]
  const pushes = distinctPushes(PARCELS)
  const load = startLoad(one.publicUrl, 2, pushes.next, { restMs: REST_MS })
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
    await vi.waitFor(isOver, { timeout: pauseMs + 5000, interval: 100 })
    other.process.kill('SIGCONT')
    await said
    await untilShared(one, 2, NAMES.length)
    expect((await other.itself())?.id).not.toBe(before)
  }
  const answers = await load.stop()
  console.log(`taken over ${takenMs.join()} ms after a pause began`)
  expect(Math.max(...takenMs)).toBeLessThan(withinOwed(10_000))
  await expectRelayed(one, { receivers, pushes, answers, faults: 2 * PAUSES_MS.length })
})

test('a clean stop hands over within a second, a kill within ten', async () => {
  await using stack = new AsyncDisposableStack()
  const receivers = await startEndpoints(stack)
  const { url } = await createDatabase('nothing')
  const sections = sectionsFor(receivers)
  const one = stack.use(await start(url, sections))
  const pushes = distinctPushes(PARCELS)
  const load = startLoad(one.publicUrl, 2, pushes.next, { restMs: REST_MS })
  const tookMs: Record<string, number> = {}
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const other = stack.use(await start(url, sections))
    await untilShared(one, 2, NAMES.length)
    other.process.kill(signal)
    const all = untilHoldsAll(one, NAMES.length)
    await other.ended
    tookMs[signal] = await all
  }
  const answers = await load.stop()
  console.log(`handed over: ${JSON.stringify(tookMs)}`)
  expect(tookMs.SIGTERM).toBeLessThan(withinOwed(1000))
  expect(tookMs.SIGKILL).toBeLessThan(withinOwed(10_000))
  await expectRelayed(one, { receivers, pushes, answers, faults: 2 })
})

test(`a replica whose network to the database swallows everything for ${SWALLOWED_MS / 1000} s is replaced by the other, and takes part again within seconds of its end`, async () => {
  await using stack = new AsyncDisposableStack()
  const receivers = await startEndpoints(stack)
  const { url } = await createDatabase('nothing')
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const through = new URL(url)
  through.port = String(proxy.port)
  const sections = sectionsFor(receivers)
  const [one, cut] = [stack.use(await start(url, sections)), stack.use(await start(through.href, sections))]
  await untilShared(one, 2, NAMES.length)
  const pushes = distinctPushes(PARCELS)
  const loads = [one, cut].map(({ publicUrl }) => startLoad(publicUrl, 2, pushes.next, { restMs: REST_MS }))
  await loads[1]?.untilAnswered(30)
  proxy.swallow()
  const swallowedAtMs = performance.now()
  const takenMs = await untilHoldsAll(one, NAMES.length)
  expect(takenMs).toBeLessThan(withinOwed(10_000))
  await vi.waitFor(() => expect(performance.now() - swallowedAtMs).toBeGreaterThan(SWALLOWED_MS), { timeout: 60_000, interval: 100 })
  proxy.flow()
  const fromMs = performance.now()
  await expect.poll(async () => (await fetch(`${cut.internalUrl}/readyz`)).status, { timeout: 60_000, interval: 50 }).toBe(200)
  const readyMs = Math.round(performance.now() - fromMs)
  await untilShared(one, 2, NAMES.length)
  const sharedMs = Math.round(performance.now() - fromMs)
  const answers = (await Promise.all(loads.map((load) => load.stop()))).flat()
  console.log(`taken over after ${takenMs} ms; ready ${readyMs} ms and roles shared ${sharedMs} ms after the end`)
  expect(readyMs).toBeLessThan(withinOwed(5000))
  await expectRelayed(one, { receivers, pushes, answers, faults: 2 })
})

// In the gate `membership.test.ts` shows it without a server.
test.each(LONG ? ['swallows everything'] : [])(
  'a relay alone whose network %s for longer than its lease goes on with what waits, though nothing else happens',
  async () => {
    await using stack = new AsyncDisposableStack()
    const receiver = stack.use(await startMoodyReceiver(KEY, () => ({ status: 200, afterMs: 100 })))
    const { url } = await createDatabase('nothing')
    const proxy = await startTcpProxy(Number(new URL(url).port))
    const through = new URL(url)
    through.port = String(proxy.port)
    const relay = stack.use(
      await start(through.href, {
        endpoints: [{ name: 'first', url: receiver.url, sharedKey: KEY, concurrency: 1 }],
        delivery: { allowNetworks: ['127.0.0.0/8'] },
      }),
    )
    await untilHoldsAll(relay, 1)
    const pushes = distinctPushes(60)
    const bodies = Array.from({ length: 60 }, () => pushes.next())
    for (const body of bodies) expect((await push(relay.publicUrl, body)).status).toBe(200)
    const lapsed = relay.logged(LAPSED)
    proxy.swallow()
    await lapsed
    const before = receiver.arrivals.length
    expect(before).toBeLessThan(60)
    proxy.flow()
    const fromMs = performance.now()
    await vi.waitFor(() => expect(receiver.arrivals.length).toBeGreaterThan(before + 1), { timeout: 60_000, interval: 50 })
    console.log(`it goes on ${Math.round(performance.now() - fromMs)} ms after the end`)
    await vi.waitFor(() => expect(new Set(receiver.arrivals.map(({ body }) => body)).size).toBe(60), { timeout: 60_000 })
  },
)

test('the server restarted, then without a connection to be had for longer than a lease lasts: the replicas lose nothing, overtake nothing, and share their roles again', async () => {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startPostgres({ settings: { max_connections: '60' } }))
  const receivers = await startEndpoints(stack)
  const sections = sectionsFor(receivers)
  const replicas = [stack.use(await start(server.url(), sections)), stack.use(await start(server.url(), sections))] as const
  await untilShared(replicas[0], 2, NAMES.length)
  const pushes = distinctPushes(PARCELS)
  const answers: Answered[] = []
  const restart = async () => {
    await server.stop('immediate')
    return () => server.start()
  }
  for (const [breakServer, lastingMs] of [[restart, 0] as const, [() => takeConnections(server.url()), 6000] as const]) {
    const loads = replicas.map(({ publicUrl }) => startLoad(publicUrl, 2, pushes.next, { restMs: REST_MS }))
    await Promise.all(loads.map((load) => load.untilAnswered(30)))
    const mend = await breakServer()
    const refused = async () => (await push(replicas[1].publicUrl, pushes.next())).status
    await expect.poll(refused, { timeout: 60_000, interval: 100 }).toBe(503)
    const refusedAtMs = performance.now()
    // Whichever of its connections a replica could keep, nobody can tell; one that has none lapses.
    const isOver = () => expect(performance.now() - refusedAtMs).toBeGreaterThan(lastingMs)
    await vi.waitFor(isOver, { timeout: lastingMs + 5000, interval: 100 })
    await mend()
    const fromMs = performance.now()
    for (const { internalUrl } of replicas) {
      await expect.poll(async () => (await fetch(`${internalUrl}/readyz`)).status, { timeout: 60_000, interval: 50 }).toBe(200)
    }
    console.log(`both ready ${Math.round(performance.now() - fromMs)} ms after the end`)
    for (const load of loads) answers.push(...(await load.stop()))
    await untilShared(replicas[0], 2, NAMES.length)
  }
  await expectRelayed(replicas[1], { receivers, pushes, answers, faults: 4 })
})
