import { expect, onTestFinished, test, vi } from 'vitest'
import { pushBody } from '../support/history/builders.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { untilCaughtUp } from '../support/relay/caught-up.ts'
import { type Answer, operatorOf } from '../support/relay/manage.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push, type Sections, writeConfig } from '../support/relay/relay.ts'
import { inSeconds } from '../support/relay/relay-process.ts'
import { type ReplicaProcess, startReplica, untilShared } from '../support/relay/replica-processes.ts'
import { spawnSandbox } from '../support/relay/sandbox-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { withinOwed } from '../support/runner/real-time.ts'
import { shiftedClock } from '../support/runner/shifted-clock.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { withClient } from '../support/store/postgres-client.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

const KEY = 'the-key-of-these-endpoints'
/** The time in which an operator's order must take effect at another replica. */
const SOON = { timeout: withinOwed(1000), interval: 10 }
/** Longer than any step takes unless it hangs. */
const LATE = { timeout: 60_000, interval: 100 }
const DELIVERY = { schedule: ['10h'], allowNetworks: ['127.0.0.0/8'] }

async function start(url: string, sections: Sections, { carrier = NO_CARRIER, env = {} as NodeJS.ProcessEnv } = {}) {
  const config = writeConfig(temporaryFolder(), carrier, { ...(await onPostgres(url)), delivery: DELIVERY, ...sections })
  const replica = await startReplica(config, env)
  onTestFinished(() => replica[Symbol.asyncDispose]())
  return { ...replica, operate: await operatorOf(replica) }
}

const configured = (name: string, url: string) => ({ name, url, sharedKey: KEY })

async function endpointsOf({ operate }: { operate: (method: string, path: string) => Promise<Answer> }) {
  const { endpoints } = (await operate('GET', '/relay/endpoints')).body
  return Array.isArray(endpoints) ? endpoints.map(({ id, name }) => ({ id: String(id), name: String(name) })) : []
}

const deliversTo = async (replica: ReplicaProcess, endpointId: string) =>
  (await replica.itself())?.roles.includes(`dispatcher/${endpointId}`) ?? false

test('within a second, an order to any replica reaches the replica that delivers', async () => {
  const { url } = await createDatabase('nothing')
  const receivers = { first: await receiverOfTest(), second: await receiverOfTest() }
  const sections = { endpoints: [] }
  const replicas = [await start(url, sections), await start(url, sections)] as const
  const [one, other] = replicas
  const tookMs: Record<string, number[]> = {}
  const soon = async (what: string, check: () => void | Promise<void>) => {
    const fromMs = performance.now()
    await vi.waitFor(check, SOON)
    tookMs[what] = [...(tookMs[what] ?? []), Math.round(performance.now() - fromMs)]
  }
  let nth = 0
  const pushTo = async (to: ReplicaProcess) => {
    nth += 1
    const body = pushBody({
      location: `Place ${nth}.`,
      eventTime: new Date(Date.now() - 60_000 + nth).toISOString(),
      trackingIds: [`70${1000 + nth}`],
    })
    expect((await push(to.publicUrl, body)).status).toBe(200)
    return body.toString()
  }
  const arrivals = (name: keyof typeof receivers, body: string) =>
    receivers[name].pushes.filter((one) => one.body.toString() === body).length
  // The replicas share the endpoints out. So with two endpoints, the replica that created both delivers to only one of them.
  for (const name of ['first', 'second'] as const) {
    await one.operate('POST', '/relay/endpoints', { name, url: receivers[name].url })
  }
  await untilShared(one, 2, 2)
  for (const { id, name } of await endpointsOf(one)) {
    if (name !== 'first' && name !== 'second') throw new Error(`no receiver for ${name}`)
    const isOnes = await deliversTo(one, id)
    const [holder, away] = isOnes ? [one, other] : [other, one]
    const path = `/relay/endpoints/${id}`
    receivers[name].answer(() => 500)
    const body = await pushTo(holder)
    await vi.waitFor(() => expect(arrivals(name, body)).toBe(1), SOON)
    const listed = async (state: string) => {
      const { deliveries } = (await away.operate('GET', `/relay/deliveries?state=${state}&endpoint=${id}`)).body
      return Array.isArray(deliveries) ? deliveries.map((one) => String(one.id)) : []
    }
    await vi.waitFor(async () => expect(await listed('retrying')).toHaveLength(1), { timeout: 60_000 })
    receivers[name].answer(() => 200)
    const [delivery = ''] = await listed('retrying')
    expect((await away.operate('POST', `/relay/deliveries/${delivery}/retry`)).status).toBe(202)
    await soon('retry', () => expect(arrivals(name, body)).toBe(2))
    await vi.waitFor(async () => expect(await listed('delivered')).toContain(delivery), { timeout: 60_000 })
    expect((await away.operate('POST', `/relay/deliveries/${delivery}/replay`)).status).toBe(202)
    await soon('replay', () => expect(arrivals(name, body)).toBe(3))

    expect((await away.operate('PATCH', path, { enabled: false })).status).toBe(200)
    const held = await pushTo(away)
    await soon('push elsewhere', () => expect(arrivals(name === 'first' ? 'second' : 'first', held)).toBe(1))
    expect(arrivals(name, held)).toBe(0)
    expect((await away.operate('PATCH', path, { enabled: true })).status).toBe(200)
    await soon('enable', () => expect(arrivals(name, held)).toBe(1))

    const moved = await receiverOfTest()
    expect((await away.operate('PATCH', path, { url: moved.url })).status).toBe(200)
    const after = await pushTo(away)
    await soon('edit', () => expect(moved.pushes.map((one) => one.body.toString())).toEqual([after]))
    expect((await away.operate('PATCH', path, { url: receivers[name].url })).status).toBe(200)
  }
  const late = await receiverOfTest()
  for (const replica of replicas) {
    await replica.operate('POST', '/relay/endpoints', { name: `late at ${replica.process.pid}`, url: late.url })
    const before = late.pushes.length
    await pushTo(replica)
    await soon('new endpoint', () => expect(late.pushes.length).toBeGreaterThan(before))
  }
  console.log(JSON.stringify(tookMs))
})

test('7.4: a rolling restart pauses, and later removes, only endpoints that no replica names', async () => {
  const { url } = await createDatabase('nothing')
  const receiver = await receiverOfTest()
  const delivery = { ...DELIVERY, removeAfter: '1s' }
  const before = { delivery, endpoints: ['old', 'both'].map((name) => configured(name, receiver.url)) }
  const after = { delivery, endpoints: ['both', 'new'].map((name) => configured(name, receiver.url)) }
  const [one, two] = [await start(url, before), await start(url, before)]
  await untilShared(one, 2, 2)
  const namesOf = async (replica: typeof one) => (await endpointsOf(replica)).map(({ name }) => name).toSorted()
  const idOf = async (replica: typeof one, name: string) => (await endpointsOf(replica)).find((one) => one.name === name)?.id
  const ids = { both: await idOf(one, 'both'), old: await idOf(one, 'old') }
  expect(new Set((await one.replicas()).map(({ configFingerprint }) => configFingerprint)).size).toBe(1)
  await two.stop()
  const warned = one.logged('replicas run with different configs; give all of them the same')
  const next = await start(url, after)
  await warned
  await untilShared(one, 2, 3)
  expect(await namesOf(one)).toEqual(['both', 'new', 'old'])
  const newId = await idOf(one, 'new')
  expect((await push(next.publicUrl, pushBody())).status).toBe(200)
  await vi.waitFor(() => expect(receiver.pushes).toHaveLength(3), { timeout: 60_000 })
  expect(new Set((await one.replicas()).map(({ configFingerprint }) => configFingerprint)).size).toBe(2)
  await one.stop()
  const paused = async () => (await next.operate('GET', `/relay/endpoints/${ids.old}`)).body
  await vi.waitFor(async () => expect(await paused()).toMatchObject({ state: 'disabled', disabledBecause: 'unnamed' }), LATE)
  const last = await start(url, after)
  // `old` is removed only if a replica loads a config without it after `old` was paused. `next` loaded its config before that.
  await vi.waitFor(async () => expect(await namesOf(next)).toEqual(['both', 'new']), LATE)
  await untilShared(last, 2, 2)
  expect([await idOf(last, 'both'), await idOf(last, 'new')]).toEqual([ids.both, newId])
})

test('7.4: an endpoint keeps its id while the only replica that names it is dead or stopped', async () => {
  const { url } = await createDatabase('nothing')
  const [atKept, atManaged] = [await receiverOfTest(), await receiverOfTest()]
  const folder = temporaryFolder()
  const write = async (sections: Sections) =>
    writeConfig(folder, NO_CARRIER, { ...(await onPostgres(url)), delivery: DELIVERY, ...sections })
  const one = await startReplica(await write({ endpoints: [configured('kept', atKept.url)] }))
  onTestFinished(() => one[Symbol.asyncDispose]())
  const other = await start(url, { endpoints: [] })
  await untilShared(one, 2, 1)
  expect((await other.operate('POST', '/relay/endpoints', { name: 'managed', url: atManaged.url })).status).toBe(201)
  const before = await endpointsOf(other)
  expect(before.map(({ name }) => name)).toEqual(['kept', 'managed'])
  const bodies = ['First.', 'Later.', 'Last.'].map((location, at) => {
    const eventTime = new Date(Date.now() - 60_000 + at).toISOString()
    return pushBody({ location, eventTime }).toString()
  })
  const pushNth = (nth: number) => vi.waitFor(async () => expect((await push(other.publicUrl, bodies[nth] ?? '')).status).toBe(200), LATE)
  // A replica that continues after a pause may repeat the events that it had begun to send.
  const told = ({ pushes }: typeof atKept) => [...new Set(pushes.map(({ body }) => body.toString()))]
  const untilTold = (kept: number, managed: number) =>
    vi.waitFor(() => expect([told(atKept), told(atManaged)]).toEqual([bodies.slice(0, kept), bodies.slice(0, managed)]), LATE)

  await write({ endpoints: [configured('managed', atKept.url)] })
  const isRefused = one.logged('the reloaded config has problems; nothing has changed')
  one.process.kill('SIGHUP')
  await isRefused
  // Other replicas check for endpoints to remove when the set of replicas changes, as here.
  const third = await start(url, { endpoints: [] })
  await vi.waitFor(async () => expect((await third.replicas()).flatMap(({ roles }) => roles)).toHaveLength(4), LATE)
  await pushNth(0)
  await untilTold(1, 1)
  expect(await endpointsOf(other)).toEqual(before)

  // Only the config of the first replica names `kept`.
  one.process.kill('SIGSTOP')
  await vi.waitFor(async () => expect(await other.replicas()).toHaveLength(2), LATE)
  await pushNth(1)
  one.process.kill('SIGCONT')
  await untilTold(2, 2)
  expect(await endpointsOf(other)).toEqual(before)

  await one.stop()
  const kept = before.find(({ name }) => name === 'kept')
  const view = async () => (await other.operate('GET', `/relay/endpoints/${kept?.id}`)).body
  await vi.waitFor(async () => expect(await view()).toMatchObject({ disabledBecause: 'unnamed' }), LATE)
  await pushNth(2)
  await untilTold(2, 3)
  const again = await start(url, { endpoints: [configured('kept', atKept.url)] })
  await untilTold(3, 3)
  expect(await endpointsOf(again)).toEqual(before)
})

/** Selects the columns that hold times of the server's clock: not durations, times of events or periods of tallies. */
const TIMES = `select table_name::text as of, column_name::text as name from information_schema.columns
  where table_schema = 'public' and column_name ~ '_ms$' and column_name !~ '^(duration|failed_for|accepted_duration|has|base|latest_at|event_at|first_pushed_at)_ms$'
    and (table_name, column_name) not in (('sighting', 'at_ms'), ('tally', 'from_ms'))`

test('replicas whose clocks are 20 minutes apart store only times of the database server', async () => {
  const { url } = await createDatabase('nothing')
  await using sandbox = await spawnSandbox(['--parcels', '3', '--seed', '4'])
  const receiver = await receiverOfTest()
  receiver.answer((nth) => (nth % 2 === 0 ? 500 : 200))
  const sections = {
    ...inSeconds,
    endpoints: ['first', 'second'].map((name) => configured(name, receiver.url)),
    delivery: { schedule: ['1s', '1s', '1s'], allowNetworks: ['127.0.0.0/8'] },
  }
  const startedMs = Date.now()
  const slow = await start(url, sections, { carrier: sandbox.url, env: shiftedClock(-600_000) })
  const fast = await start(url, sections, { carrier: sandbox.url, env: shiftedClock(600_000) })
  await untilShared(slow, 2, 2)
  await sandbox.order('webhooks', { urls: [`${slow.publicUrl}/webhooks/status`, `${fast.publicUrl}/webhooks/status`] })
  await sandbox.order('advance', { seconds: 10 * 3600 })
  const { parcels } = await sandbox.world()
  for (const { trackingNumber } of parcels) {
    for (const replica of [slow, fast]) await replica.operate('PUT', `/relay/parcels/${trackingNumber}/watch`)
  }
  // Each replica accepts a token that the other has just issued.
  for (const [of, at] of [[slow, fast] as const, [fast, slow] as const]) {
    const answer = await fetch(`${at.internalUrl}/relay/endpoints`, { headers: { authorization: `Bearer ${of.asker.token}` } })
    expect(answer.status).toBe(200)
  }
  await vi.waitFor(() => expect(receiver.pushes.length).toBeGreaterThan(5), { timeout: 60_000 })
  const polled = 'select count(*)::integer as count from answer'
  await vi.waitFor(
    async () => expect((await withClient(url, (client) => client.query<{ count: number }>(polled))).rows[0]?.count).toBeGreaterThan(0),
    {
      timeout: 60_000,
    },
  )
  const wrong = await withClient(url, async (client) => {
    const { rows: columns } = await client.query<{ of: string; name: string }>(TIMES)
    expect(columns.length).toBeGreaterThan(20)
    const found: string[] = []
    for (const { of, name } of columns) {
      const { rows } = await client.query<{ low: string | null; high: string | null }>(
        `select min(${name}) as low, max(${name}) as high from ${of} where ${name} > 0`,
      )
      const [{ low, high } = { low: null, high: null }] = rows
      if (low !== null && Number(low) < startedMs - 300_000) found.push(`${of}.${name} ${new Date(Number(low)).toISOString()}`)
      if (high !== null && Number(high) > Date.now() + 300_000) found.push(`${of}.${name} ${new Date(Number(high)).toISOString()}`)
    }
    return found
  })
  expect(wrong).toEqual([])
  for (const { headers } of receiver.pushes) {
    const sentMs = Number(headers['webhook-timestamp'] ?? 'NaN') * 1000
    if (!Number.isNaN(sentMs)) expect(Math.abs(sentMs - Date.now())).toBeLessThan(300_000)
  }
  // A replica caches the pages of the feed that it has read, so both are compared only when no event changes any more.
  for (const language of ['en', 'sv'] as const) await untilCaughtUp(slow.asker, parcels, language, ({ trackingNumber }) => trackingNumber)
  const [ofSlow, ofFast] = await Promise.all(
    [slow, fast].map(async ({ operate }) => (await operate('GET', '/relay/events?after=0&limit=100')).text),
  )
  expect(ofFast).toBe(ofSlow)
  for (const { lastSeenAt } of await fast.replicas()) expect(Math.abs(Date.parse(lastSeenAt) - Date.now())).toBeLessThan(60_000)
})
