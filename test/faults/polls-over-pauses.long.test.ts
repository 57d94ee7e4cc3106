import { afterEach, expect, test, vi } from 'vitest'
import { closeOpened } from '../core/carrier/carrier-double.ts'
import { createFeedConsumer, replayFeed } from '../support/delivery/feed-consumer.ts'
import { type Ask, openSlowCarrier } from '../support/network/slow-carrier.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ask, writeConfig } from '../support/relay/relay.ts'
import { inSeconds } from '../support/relay/relay-process.ts'
import { type ReplicaProcess, startReplica, untilShared } from '../support/relay/replica-processes.ts'
import { LONG } from '../support/runner/long-form.ts'
import { seeded } from '../support/runner/seeded.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

afterEach(closeOpened)

const PAUSES = LONG ? 8 : 1
/** There is one replica more than there are roles, so a replica that was paused does not get its role back. */
const NAMES = ['one', 'two', 'three']
const PARCELS = ['PA100001SE', 'PA100002SE', 'PA100003SE', 'PA100004SE', 'PA100005SE']
const LANGUAGES = ['en', 'sv'] as const
/** A parcel is polled one second after its last poll. Delays may bring requests 200 ms closer together. */
const APART_MS = 1000 - 200
/** After this time without requests, no request from a replica to the carrier is still on its way. */
const SETTLED_MS = 30
const DECLARED_DEAD = 'this replica counts as dead, because it was not seen for a while or the database has lost commits; it joins again'

type SlowCarrier = Awaited<ReturnType<typeof openSlowCarrier>>
type Replicas = ReadonlyMap<string, ReplicaProcess>

/** Lists requests that come too soon after a request for the same parcel and language. */
function tooSoon(asks: readonly Ask[]): readonly string[] {
  const alike = Map.groupBy(asks, ({ parcel, language }) => `${parcel} in ${language}`)
  return [...alike].flatMap(([what, same]) =>
    same.flatMap(({ atMs, by }, at) => {
      const before = same[at - 1]
      const laterMs = atMs - (before?.atMs ?? Number.NEGATIVE_INFINITY)
      return laterMs >= APART_MS ? [] : [`${what}: by ${by} ${Math.round(laterMs)} ms after ${before?.by}`]
    }),
  )
}

async function startReplicas(stack: AsyncDisposableStack, carrier: SlowCarrier): Promise<Replicas> {
  const store = await onPostgres()
  const start = async (name: string) => {
    const upstream = { ...inSeconds.upstream, ...carrier.configOf(name), languages: LANGUAGES }
    const config = writeConfig(temporaryFolder(), carrier.url, { ...inSeconds, ...store, upstream })
    return [name, stack.use(await startReplica(config))] as const
  }
  return new Map(await Promise.all(NAMES.map(start)))
}

async function watch({ asker }: ReplicaProcess): Promise<void> {
  const headers = { authorization: `Bearer ${asker.token}` }
  for (const parcel of PARCELS) {
    expect((await fetch(`${asker.internalUrl}/relay/parcels/${parcel}/watch`, { method: 'PUT', headers })).status).toBe(201)
  }
}

/** Returns the replica that polls, and another replica to ask while the first one is paused. */
async function pollerOf(replicas: Replicas) {
  const [anyone] = replicas.values()
  const told = anyone === undefined ? [] : await untilShared(anyone, replicas.size, 0)
  const pid = told.find(({ roles }) => roles.includes('poller'))?.name.split('/')[1]
  const [name, poller] = [...replicas].find(([, { process: child }]) => String(child.pid) === pid) ?? []
  const other = [...replicas.values()].find((replica) => replica !== poller)
  if (name === undefined || poller === undefined || other === undefined) throw new Error(`nobody polls: ${JSON.stringify(told)}`)
  return { name, poller, other }
}

/** Resolves when these replicas together have polled every parcel after `sinceMs`. */
async function untilPolled(carrier: SlowCarrier, sinceMs: number, by: readonly string[]): Promise<void> {
  const polled = () => new Set(carrier.asks.filter((asked) => by.includes(asked.by) && asked.atMs > sinceMs).map(({ parcel }) => parcel))
  await vi.waitFor(() => expect(polled().size).toBe(PARCELS.length), { timeout: 60_000, interval: 10 })
}

/**
 * Pauses the poller while its polls are under way. Lets it continue `pausedForMs` after another replica has begun to poll. Returns how many polls
 * were under way, and the requests that the paused replica made after the pause.
 */
async function pausePoller(replicas: Replicas, carrier: SlowCarrier, after: { readonly runsMs: number; readonly pausedForMs: number }) {
  const { name, poller, other } = await pollerOf(replicas)
  const others = NAMES.filter((one) => one !== name)
  const declaredDead = poller.logged(DECLARED_DEAD)
  const until = (isSo: () => boolean) => vi.waitFor(() => expect(isSo()).toBe(true), { timeout: 60_000, interval: 2 })
  const fromMs = performance.now()
  await until(() => performance.now() - fromMs >= after.runsMs && carrier.underWay(name).length > 1 && carrier.silentMs() > SETTLED_MS)
  const underWay = carrier.underWay(name).length
  poller.process.kill('SIGSTOP')
  const pausedAtMs = performance.now()
  await until(() => carrier.asks.some(({ by, atMs }) => by !== name && atMs > pausedAtMs))
  const takenOverAtMs = performance.now()
  await until(() => performance.now() - takenOverAtMs >= after.pausedForMs)
  const goesOnAtMs = performance.now()
  poller.process.kill('SIGCONT')
  await declaredDead
  await untilShared(other, NAMES.length, 0)
  await untilPolled(carrier, goesOnAtMs + 1000, others)
  const late = carrier.asks.filter(({ by, atMs }) => by === name && atMs > goesOnAtMs)
  return {
    name,
    underWay,
    late: late.map(({ parcel, language, atMs }) => `${parcel} in ${language} after ${Math.round(atMs - goesOnAtMs)} ms`),
  }
}

async function callsCounted({ asker }: ReplicaProcess): Promise<number> {
  const told: unknown = await (await ask(asker.internalUrl, asker.token, '/relay/upstream')).json()
  const counted = /"callsToday":(\d+)/.exec(JSON.stringify(told))?.[1]
  return Number(counted)
}

test(`a replica that is paused during its polls${PAUSES > 1 ? ` (${PAUSES} times)` : ''} polls nothing afterwards`, async () => {
  await using stack = new AsyncDisposableStack()
  const random = seeded(7)
  const carrier = await openSlowCarrier(LANGUAGES[0], () => (LONG ? 50 + random() * 600 : 300))
  const replicas = await startReplicas(stack, carrier)
  await watch((await pollerOf(replicas)).poller)
  let last = ''
  for (let pause = 0; pause < PAUSES; pause++) {
    const paused = await pausePoller(replicas, carrier, {
      runsMs: LONG ? random() * 1500 : 0,
      pausedForMs: pause % 2 === 0 ? 0 : random() * 4000,
    })
    console.log(`${paused.name} was paused with ${paused.underWay} polls under way`)
    expect(paused.late).toEqual([])
    last = paused.name
  }
  // Now only the replica that was paused last is left to poll. The calls that the pause interrupted must not delay its polls.
  const fromMs = performance.now()
  await Promise.all([...replicas].filter(([name]) => name !== last).map(([, replica]) => replica.stop()))
  await untilPolled(carrier, fromMs, [last])
  expect(tooSoon(carrier.asks)).toEqual([])

  const survivor = replicas.get(last)
  if (survivor === undefined) throw new Error(`no replica ${last}`)
  const happened = carrier.quieten()
  const feed = createFeedConsumer()
  const told = () => [...feed.parcels.values()].reduce((sum, { history }) => sum + new Set(history).size, 0)
  await vi.waitFor(
    async () => {
      await replayFeed(feed, survivor.asker.internalUrl, survivor.asker.token)
      expect(told()).toBe(happened)
    },
    { timeout: 60_000, interval: 50 },
  )
  expect(feed.kinds.get('entry')).toBe(happened)
  expect(await callsCounted(survivor)).toBeGreaterThanOrEqual(carrier.callsToday())
  console.log(`${carrier.asks.length} questions, ${happened} entries`)
})
