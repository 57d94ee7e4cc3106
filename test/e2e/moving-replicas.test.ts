import { expect, onTestFinished, test, vi } from 'vitest'
import { postgres } from '../../src/store/postgres/postgres-engine.ts'
import { endedJob, expectInOrder, longestPauseMs, postJson, startMove, startReceiver } from '../support/moves-of-relay.ts'
import { onPostgres } from '../support/on-postgres.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { distinctPushes, startLoad } from '../support/push-load.ts'
import { ADMIN, ask, logIn, writeConfig } from '../support/relay.ts'
import { inSeconds, type RunningProcess, runRelay } from '../support/relay-process.ts'
import { storedBodies } from '../support/stored-rows.ts'
import { temporaryFolder } from '../support/temporary.ts'

/** Nobody listens there. */
const NO_CARRIER = 'http://127.0.0.1:9'

const askerOf = async ({ internalUrl }: RunningProcess) => ({ internalUrl, token: await logIn(internalUrl, ADMIN) })

test('three replicas move to another database while all of them receive and relay, and lose nothing', async () => {
  const folder = temporaryFolder()
  const [from, to] = [(await createDatabase('nothing')).url, (await createDatabase('nothing')).url]
  const receiver = await startReceiver()
  const delivery = { schedule: ['100ms', '200ms'], allowNetworks: ['127.0.0.0/8'] }
  const config = writeConfig(folder, NO_CARRIER, { ...inSeconds, ...(await onPostgres(from)), delivery })
  const first = await runRelay(config)
  const others = await Promise.all([runRelay(config), runRelay(config)])
  const relays = [first, ...others]
  onTestFinished(async () => {
    for (const relay of relays) await relay[Symbol.asyncDispose]()
  })
  const asker = await askerOf(first)
  expect(await postJson(asker, '/relay/endpoints', { name: 'shop', url: receiver.url })).toMatchObject({ status: 201 })
  const refused = await postJson(asker, '/relay/store/move', { to: `sqlite:${folder}/relay.db` })
  expect(refused).toMatchObject({
    status: 409,
    body: { detail: 'A file serves one relay, and 2 others use this database. Stop them first.' },
  })

  const { next } = distinctPushes(20)
  const loads = relays.map(({ publicUrl }) => startLoad(publicUrl, 2, next, { isPatient: true }))
  await Promise.all(loads.map((load) => load.untilAnswered(60)))
  expect(await endedJob(asker, await startMove(asker, to))).toMatchObject({ state: 'done' })
  const isOnNew = async (relay: RunningProcess) => {
    const { replicas } = Object(await (await ask(relay.internalUrl, asker.token, '/relay/replicas')).json())
    const jobs: unknown = await (await ask(relay.internalUrl, asker.token, '/relay/jobs')).json()
    expect([replicas.length, jobs]).toMatchObject([3, { jobs: [{ state: 'done' }] }])
  }
  for (const relay of relays) await vi.waitFor(() => isOnNew(relay), { timeout: 20_000 })
  const before = loads.map((load) => load.answered())
  await Promise.all(loads.map((load, nth) => load.untilAnswered((before[nth] ?? 0) + 60)))
  const answers = await Promise.all(loads.map((load) => load.stop()))

  for (const all of answers) {
    expect(all.filter(({ status }) => status !== 200 && status !== 503 && status !== null)).toEqual([])
    expect(longestPauseMs(all)).toBeLessThan(5000)
  }
  const acknowledged = answers.flat().flatMap(({ status, body }) => (status === 200 ? [body] : []))
  const stored = await storedBodies(to)
  expect(acknowledged.filter((body) => !stored.has(body))).toEqual([])
  await vi.waitFor(() => expect(expectInOrder(receiver)).toBeGreaterThanOrEqual(acknowledged.length), { timeout: 30_000 })
  await expect(postgres.openWriteStore(from)).rejects.toThrow('was moved to')
}, 120_000)
