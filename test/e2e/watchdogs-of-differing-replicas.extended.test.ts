import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { deadlineOf, type WatchedEntry } from '../../src/insight/watchdogs/watchdog.rules.ts'
import { watchdogs } from '../../src/insight/watchdogs/watchdogs.config.ts'
import { pushBody } from '../support/history/builders.ts'
import { listenInTest } from '../support/network/listen.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { startReplica } from '../support/relay/replica-processes.ts'
import { HOUR_MS } from '../support/runner/constants.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'

/** Longer than any step takes unless it hangs. */
const LATE = { timeout: 120_000, interval: 200 }
const [SLOW, FAST, BOOKED, ARRIVED] = [
  { name: 'no-scan', when: { status: ['Ingested'] }, notWithin: '48h', past: true },
  { name: 'no-scan', when: { status: ['Ingested'] }, notWithin: '24h', past: true },
  { name: 'not-handed-in', when: { status: ['Created'] }, notWithin: '1h', until: ['Ingested'], past: true },
  { name: 'not-delivered', when: { status: ['Ingested'] }, notWithin: '2h', until: ['DeliverySucceeded'], past: true },
]
const RULES = { one: [SLOW, BOOKED], other: [FAST, ARRIVED], both: [SLOW, BOOKED, ARRIVED] }

/** The histories of parcels by turns: hours ago and status of each entry. */
const HISTORIES = [
  [[10, 'Created']],
  [[100, 'Ingested']],
  [[30, 'Ingested']],
  [
    [10, 'Created'],
    [9, 'Ingested'],
  ],
  [
    [60, 'Created'],
    [50, 'Ingested'],
    [1, 'DeliverySucceeded'],
  ],
] as const

interface Told {
  readonly event: string
  readonly key: string
}

const eventSchema = z.object({
  kind: z.string(),
  parcel: z.object({ identifiers: z.array(z.string()) }),
  watchdog: z.object({ rule: z.string(), since: z.string() }).optional(),
})
const feedSchema = z.object({ events: z.array(eventSchema), next: z.number() })
const breachSchema = z.object({ rule: z.string(), since: z.string(), parcel: z.object({ identifiers: z.array(z.string()) }) })
const breachesSchema = z.object({ breaches: z.array(breachSchema), next: z.string().nullish() })
const bodySchema = z.object({
  event: z.string(),
  rule: z.string(),
  since: z.string(),
  parcel: z.object({ identifiers: z.array(z.string()) }),
})

const keyOf = (identifier: string | undefined, rule: string, since: string | number) =>
  `${identifier} ${rule} ${new Date(since).toISOString()}`

async function startPair() {
  // It knows no parcel.
  const carrier = createServer((request, response) => {
    if (request.url === '/auth/token') response.setHeader('content-type', 'application/json').end('{"token":"one"}')
    else response.writeHead(404).end()
  })
  const carrierUrl = `http://127.0.0.1:${await listenInTest(carrier)}`
  const receiver = await receiverOfTest()
  const events = ['entry', 'parcel.stalled', 'parcel.recovered']
  const shared = {
    ...(await onPostgres()),
    delivery: { schedule: ['200ms'], allowNetworks: ['127.0.0.0/8'] },
    endpoints: [{ name: 'shop', url: receiver.url, sharedKey: 'the-key-of-this-endpoint', events }],
  }
  const folders = { one: temporaryFolder(), other: temporaryFolder() }
  const write = (which: keyof typeof folders, rules: keyof typeof RULES) =>
    writeConfig(folders[which], carrierUrl, { ...shared, watchdogs: RULES[rules] })
  const start = async (which: keyof typeof folders, rules: keyof typeof RULES) => {
    const replica = await startReplica(write(which, rules))
    onTestFinished(() => replica[Symbol.asyncDispose]())
    const isWatching = async () => (await replica.itself())?.roles.includes('poller') === true
    return { ...replica, which, isWatching, operate: await operatorOf(replica) }
  }
  return { receiver, write, start }
}

type Pair = Awaited<ReturnType<typeof startPair>>
type Replica = Awaited<ReturnType<Pair['start']>>

/** Pushes histories to living replicas in turn, until stopped. Returns what the relays have acknowledged. */
function startLoad() {
  const acknowledged = new Map<string, WatchedEntry[]>()
  const targets = new Set<Replica>()
  let isStopped = false
  let turn = 0
  async function pushOne(identifier: string, [hours, status]: readonly [number, string]) {
    const atMs = Date.now() - hours * HOUR_MS
    const eventTime = new Date(atMs).toISOString()
    const body = pushBody({ status, detailedStatus: status, eventTime, trackingIds: [identifier] })
    for (;;) {
      const target = [...targets][turn++ % Math.max(1, targets.size)]
      const answer = target === undefined ? null : await push(target.publicUrl, body).catch(() => null)
      if (answer?.status === 200) break
      await pause(20)
    }
    acknowledged.set(identifier, [...(acknowledged.get(identifier) ?? []), { status, detailedStatus: status, atMs, learntAtMs: null }])
  }
  const running = (async () => {
    for (let nth = 0; !isStopped; nth++) {
      for (const scan of HISTORIES[nth % HISTORIES.length] ?? []) await pushOne(String(7_000_000 + nth), scan)
      await pause(40)
    }
  })()
  return {
    acknowledged,
    targets,
    async stop() {
      isStopped = true
      await running
    },
    more: (parcels: number) => {
      const wanted = acknowledged.size + parcels
      return vi.waitFor(() => expect(acknowledged.size).toBeGreaterThan(wanted), LATE)
    },
  }
}

async function toldInFeed({ operate }: Replica): Promise<readonly Told[]> {
  const told: Told[] = []
  for (let after = 0; ; ) {
    const { events, next } = feedSchema.parse((await operate('GET', `/relay/events?after=${after}&limit=500`)).body)
    for (const { kind, parcel, watchdog } of events) {
      if (watchdog !== undefined) told.push({ event: `parcel.${kind}`, key: keyOf(parcel.identifiers[0], watchdog.rule, watchdog.since) })
    }
    if (next === after || events.length === 0) return told
    after = next
  }
}

function toldToEndpoint({ pushes }: Pair['receiver']): readonly Told[] {
  // A replica that is killed may have sent what it did not mark yet.
  const distinct = new Map(pushes.map(({ headers, body }) => [headers['webhook-id'], body.toString()]))
  return [...distinct.values()].flatMap((text) => {
    const { success, data } = bodySchema.safeParse(JSON.parse(text))
    return success ? [{ event: data.event, key: keyOf(data.parcel.identifiers[0], data.rule, data.since) }] : []
  })
}

async function lastingAt({ operate }: Replica): Promise<readonly string[]> {
  const keys: string[] = []
  for (let cursor = ''; ; ) {
    const page = breachesSchema.parse((await operate('GET', `/relay/watchdogs/breaches?open=true&limit=100${cursor}`)).body)
    keys.push(...page.breaches.map(({ parcel, rule, since }) => keyOf(parcel.identifiers[0], rule, since)))
    if (page.next === null || page.next === undefined) return keys.sort()
    cursor = `&cursor=${page.next}`
  }
}

/** What the rules of both say of the histories. */
function stalledByRules(histories: ReadonlyMap<string, readonly WatchedEntry[]>): readonly string[] {
  const rules = watchdogs().parse(RULES.both)
  return [...histories].flatMap(([identifier, entries]) =>
    rules.flatMap((rule) => {
      const deadline = deadlineOf(rule, 'UTC', { entries, distributionType: '', labels: [] })
      return deadline === null || deadline.sinceMs > Date.now() ? [] : [keyOf(identifier, rule.name, deadline.sinceMs)]
    }),
  )
}

const linesOf = (told: readonly Told[]) => told.map(({ event, key }) => `${event} ${key}`).sort()

test('9.4: replicas with different rules, whose watch moves by kills, tell each breach once, and agree when all have the same', async () => {
  const { receiver, write, start } = await startPair()
  let alive: readonly [Replica, Replica] = [await start('one', 'one'), await start('other', 'other')]
  const load = startLoad()
  for (const one of alive) load.targets.add(one)

  /** Kills the replica that watches, once it has told something. Returns it and the other, which then watches. */
  const killWatching = async () => {
    await vi.waitFor(async () => expect((await Promise.all(alive.map((one) => one.isWatching()))).filter(Boolean)).toHaveLength(1), LATE)
    const [killed, left] = (await alive[0].isWatching()) ? alive : ([alive[1], alive[0]] as const)
    const before = (await toldInFeed(left)).length
    await load.more(30)
    await vi.waitFor(async () => expect((await toldInFeed(left)).length).toBeGreaterThan(before + 5), LATE)
    load.targets.delete(killed)
    killed.process.kill('SIGKILL')
    await killed.ended
    await vi.waitFor(async () => expect(await left.isWatching()).toBe(true), LATE)
    return { killed, left }
  }
  for (let kill = 0; kill < 2; kill++) {
    const { killed, left } = await killWatching()
    const again = await start(killed.which, killed.which)
    load.targets.add(again)
    alive = [again, left]
  }

  // The one that is killed at last comes back with its old rules, while the one that watches has the new ones.
  const { killed, left } = await killWatching()
  write(left.which, 'both')
  left.process.kill('SIGHUP')
  await vi.waitFor(async () => expect((await left.operate('GET', '/relay/watchdogs')).body.watchdogs).toHaveLength(3), LATE)
  const old = await start(killed.which, killed.which)
  load.targets.add(old)
  await load.more(60)
  load.targets.delete(old)
  expect(await old.stop()).toEqual({ code: 0, signal: null })
  load.targets.add(await start(killed.which, 'both'))
  await load.more(20)
  await load.stop()

  // What a rule told is over when its rule is gone, and not told again when the rule is back.
  const over = async () => new Set((await toldInFeed(left)).flatMap(({ event, key }) => (event === 'parcel.recovered' ? [key] : [])))
  await vi.waitFor(async () => {
    const ended = await over()
    const expected = stalledByRules(load.acknowledged).filter((key) => !ended.has(key))
    expect(expected.length).toBeGreaterThan(50)
    expect(await lastingAt(left)).toEqual(expected.sort())
  }, LATE)
  const told = linesOf(await toldInFeed(left))
  expect(told.filter((line, at) => line === told[at - 1])).toEqual([])
  await vi.waitFor(() => expect(linesOf(toldToEndpoint(receiver))).toEqual(told), LATE)
})
