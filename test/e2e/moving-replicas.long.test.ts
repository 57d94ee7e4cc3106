import { expect, onTestFinished, test, vi } from 'vitest'
import { postgres } from '../../src/server/postgres/postgres-engine.ts'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { endedJob, expectInOrder, longestPauseMs, postJson, startMove } from '../support/relay/moves-of-relay.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, ask, logIn, push, writeConfig } from '../support/relay/relay.ts'
import { inSeconds, type RunningProcess, runRelay } from '../support/relay/relay-process.ts'
import { startReplica } from '../support/relay/replica-processes.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm } from '../support/runner/long-form.ts'
import { withinOwed } from '../support/runner/real-time.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { createDatabase } from '../support/store/postgres-database.ts'
import { storedBodies } from '../support/store/stored-rows.ts'

/** The number of pushes that are sent before the move, and again after it. */
const SOME = byForm(10, 60)
const REPLICAS = byForm(2, 3)
const LOAD = { atOnce: byForm(1, 2), restMs: byForm(50, 0) }

const askerOf = async ({ internalUrl }: RunningProcess) => ({ internalUrl, token: await logIn(internalUrl, ADMIN) })

test(`${REPLICAS} replicas move to another database under load and lose nothing`, async () => {
  const folder = temporaryFolder()
  const [from, to] = [(await createDatabase('nothing')).url, (await createDatabase('nothing')).url]
  const receiver = await receiverOfTest()
  const delivery = { schedule: ['100ms', '200ms'], allowNetworks: ['127.0.0.0/8'] }
  const config = writeConfig(folder, NO_CARRIER, { ...inSeconds, ...(await onPostgres(from)), delivery })
  const first = await runRelay(config)
  const others = await Promise.all(Array.from({ length: REPLICAS - 1 }, () => runRelay(config)))
  const relays = [first, ...others]
  onTestFinished(async () => {
    for (const relay of relays) await relay[Symbol.asyncDispose]()
  })
  const asker = await askerOf(first)
  expect(await postJson(asker, '/relay/endpoints', { name: 'shop', url: receiver.url })).toMatchObject({ status: 201 })
  const refused = await postJson(asker, '/relay/store/move', { to: `sqlite:${folder}/relay.db` })
  expect(refused).toMatchObject({
    status: 409,
    body: { detail: `A file serves one relay, and ${REPLICAS - 1} other relays use this database. Stop all but this relay first.` },
  })

  const { next } = distinctPushes(20)
  const loads = relays.map(({ publicUrl }) => startLoad(publicUrl, LOAD.atOnce, next, { isPatient: true, restMs: LOAD.restMs }))
  await Promise.all(loads.map((load) => load.untilAnswered(SOME)))
  expect(await endedJob(asker, await startMove(asker, to))).toMatchObject({ state: 'done', failure: null })
  const isOnNew = async (relay: RunningProcess) => {
    const { replicas } = Object(await (await ask(relay.internalUrl, asker.token, '/relay/replicas')).json())
    const jobs: unknown = await (await ask(relay.internalUrl, asker.token, '/relay/jobs')).json()
    expect([replicas.length, jobs]).toMatchObject([REPLICAS, { jobs: [{ state: 'done' }] }])
  }
  for (const relay of relays) await vi.waitFor(() => isOnNew(relay), { timeout: 60_000 })
  const before = loads.map((load) => load.answered())
  await Promise.all(loads.map((load, nth) => load.untilAnswered((before[nth] ?? 0) + SOME)))
  const answers = await Promise.all(loads.map((load) => load.stop()))

  for (const all of answers) {
    expect(all.filter(({ status }) => status !== 200 && status !== 503 && status !== null)).toEqual([])
    expect(longestPauseMs(all)).toBeLessThan(withinOwed(5000))
  }
  const acknowledged = answers.flat().flatMap(({ status, body }) => (status === 200 ? [body] : []))
  const stored = await storedBodies(to)
  expect(acknowledged.filter((body) => !stored.has(body))).toEqual([])
  await vi.waitFor(() => expect(expectInOrder(receiver)).toBeGreaterThanOrEqual(acknowledged.length), { timeout: 60_000 })
  await expect(postgres.openWriteStore(from)).rejects.toThrow('was moved to')
})

test('a replica that was stopped during a move does not answer from the old database', async () => {
  const [from, to] = [(await createDatabase('nothing')).url, (await createDatabase('nothing')).url]
  const config = writeConfig(temporaryFolder(), NO_CARRIER, { ...inSeconds, ...(await onPostgres(from)) })
  const [mover, stopped] = [await startReplica(config), await startReplica(config)]
  onTestFinished(async () => {
    for (const relay of [mover, stopped]) await relay[Symbol.asyncDispose]()
  })
  const pushes = distinctPushes(1)
  const pushOne = async () => {
    const body = pushes.next()
    // The mover answers 503 until it uses the new store, so push again.
    await vi.waitFor(async () => expect((await push(mover.publicUrl, body)).status).toBe(200))
    return pushes.entryOf(body)
  }
  await pushOne()
  const history = '/v1/status/880000/all?language=en'
  // Ask twice, so that the answer is in the cache.
  for (let time = 0; time < 2; time++) expect((await ask(stopped.internalUrl, stopped.asker.token, history)).status).toBe(200)

  stopped.process.kill('SIGSTOP')
  await vi.waitFor(async () => expect(await mover.replicas()).toHaveLength(1), { timeout: 60_000 })
  expect(await endedJob(mover.asker, await startMove(mover.asker, to))).toMatchObject({ state: 'done' })
  const newest = await pushOne()
  const feed: unknown = await (await ask(mover.internalUrl, mover.asker.token, '/relay/events?after=0')).json()
  const { next } = Object(feed)

  stopped.process.kill('SIGCONT')
  const seen = { history: new Set<string>(), feed: new Set<number>() }
  await vi.waitFor(
    async () => {
      const answers = [history, `/relay/events?after=${next}`, '/readyz'].map((path) => ask(stopped.internalUrl, stopped.asker.token, path))
      const [told, read, ready] = await Promise.all(answers)
      const text = await told?.text()
      seen.history.add(told?.status === 200 ? `200 ${text?.includes(newest) === true ? 'new' : 'old'}` : String(told?.status))
      seen.feed.add(read?.status ?? 0)
      expect([told?.status, read?.status, ready?.status]).toEqual([200, 200, 200])
    },
    { timeout: 60_000, interval: byForm(20, 5) },
  )
  expect([...seen.history].filter((answer) => answer !== '503')).toEqual(['200 new'])
  expect([...seen.feed].filter((status) => status !== 503)).toEqual([200])
})
