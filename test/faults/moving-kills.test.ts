import { expect, test, vi } from 'vitest'
import { textOf } from '../support/caught-up.ts'
import { LONG } from '../support/long-form.ts'
import { endedJob, startMove } from '../support/moves-of-relay.ts'
import { onPostgres } from '../support/on-postgres.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { openTestPool } from '../support/postgres-pool.ts'
import { distinctPushes, startLoad } from '../support/push-load.ts'
import { ADMIN, ask, logIn, push, writeConfig } from '../support/relay.ts'
import { runRelay } from '../support/relay-process.ts'
import { startReplica } from '../support/replica-processes.ts'
import { seeded } from '../support/seeded.ts'
import { storedBodies, storedRows } from '../support/stored-rows.ts'
import { temporaryFolder } from '../support/temporary.ts'

/** Nobody listens there. */
const NO_CARRIER = 'http://127.0.0.1:9'
const KILLS = LONG ? 40 : 4
/** How many pushes are answered while a store of this size is moved, those that are refused in the switch included. */
const PUSHES_IN_MOVE = 2000

test(`killed ${KILLS} times at any moment of a move, a relay starts again on the store that is in use, with every push that was answered 200`, async () => {
  const folder = temporaryFolder()
  const database = (await createDatabase('nothing')).url
  const config = writeConfig(folder, NO_CARRIER, { secrets: (await onPostgres(database)).secrets })
  const random = seeded(Date.now())
  // As many parcels as it takes for none to be full.
  const pushes = distinctPushes(100)
  const acknowledged: string[] = []
  let moves = 0
  for (let kill = 0; kill <= KILLS; kill++) {
    await using relay = await runRelay(config)
    const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
    const histories = await Promise.all(pushes.parcels(acknowledged).map((id) => textOf(asker, id, 'all', 'en')))
    const known = new Set(histories.join('\n').match(/"location":"Place \d+\."/g))
    expect(acknowledged.map(pushes.entryOf).filter((entry) => !known.has(entry))).toEqual([])
    // None is left running: it was done, or it failed with the relay.
    const isDone = await vi.waitFor(
      async () => {
        const jobs: unknown = await (await ask(asker.internalUrl, asker.token, '/relay/jobs?limit=1')).json()
        if (kill > 0) expect(jobs).toMatchObject({ jobs: [{ state: expect.stringMatching(/^(?:done|failed)$/) }] })
        return JSON.stringify(jobs).includes('"state":"done"')
      },
      { timeout: 15_000 },
    )
    if (kill > 0 && isDone) moves += 1
    const to = moves % 2 === 0 ? (moves === 0 ? database : (await createDatabase('nothing')).url) : `sqlite:${folder}/moved-${moves}.db`
    const load = startLoad(relay.publicUrl, 8, pushes.next, { isPatient: true })
    await load.untilAnswered(100)
    const job = await startMove(asker, to)
    if (kill === KILLS) expect(await endedJob(asker, job)).toMatchObject({ state: 'done' })
    // The moment of the kill is what is tried.
    else await load.untilAnswered(100 + Math.floor(random() * PUSHES_IN_MOVE))
    relay.process.kill('SIGKILL')
    await relay.ended
    const answers = await load.stop()
    acknowledged.push(...answers.filter(({ status }) => status === 200).map(({ body }) => body))
  }
}, 1_200_000)

test('when the replica that moves a database is killed in its switch, the others go on with the old one, and can move it themselves', async () => {
  const [from, to] = [(await createDatabase('nothing')).url, (await createDatabase('nothing')).url]
  const config = writeConfig(temporaryFolder(), NO_CARRIER, await onPostgres(from))
  await using mover = await runRelay(config)
  await using other = await runRelay(config)
  const pushes = distinctPushes(20)
  const load = startLoad(other.publicUrl, 4, pushes.next, { isPatient: true })
  await load.untilAnswered(100)
  await startMove({ internalUrl: mover.internalUrl, token: await logIn(mover.internalUrl, ADMIN) }, to)
  const state = async () => (await storedRows<{ state: string }>(from, 'select state from moving'))[0]?.state
  await vi.waitFor(async () => expect(await state()).toBe('pausing'), { timeout: 20_000, interval: 5 })
  mover.process.kill('SIGKILL')
  const asker = { internalUrl: other.internalUrl, token: await logIn(other.internalUrl, ADMIN) }
  const jobs = async (): Promise<unknown> => (await ask(asker.internalUrl, asker.token, '/relay/jobs')).json()
  await vi.waitFor(async () => expect(await jobs()).toMatchObject({ jobs: [{ state: 'failed' }] }), { timeout: 30_000, interval: 250 })
  // The relay before still answers for a moment.
  const job = await vi.waitFor(() => startMove(asker, to), { timeout: 10_000, interval: 200 })
  expect(await endedJob(asker, job)).toMatchObject({ state: 'done' })
  await load.untilAnswered(load.answered() + 100)
  const answers = await load.stop()
  const stored = await storedBodies(to)
  expect(answers.filter(({ status, body }) => status === 200 && !stored.has(body))).toEqual([])
}, 120_000)

test('when the replica that moves a database is stopped in its switch, the others go on with the old one, and it joins them when it goes on', async () => {
  const [from, to] = [(await createDatabase('nothing')).url, (await createDatabase('nothing')).url]
  const config = writeConfig(temporaryFolder(), NO_CARRIER, await onPostgres(from))
  await using mover = await startReplica(config)
  await using other = await startReplica(config)
  const pushes = distinctPushes(20)
  const load = startLoad(other.publicUrl, 4, pushes.next, { isPatient: true })
  await load.untilAnswered(100)
  const stateAt = async (place: string) => (await storedRows<{ state: string }>(place, 'select state from moving'))[0]?.state
  const job = await startMove(mover.asker, to)
  // The last that a switch changes over there, so that it stands still while it holds the locks of the old store.
  await vi.waitFor(async () => expect(await stateAt(to)).toBe('receiving'), { timeout: 20_000, interval: 5 })
  const blocking = await openTestPool(to).connect()
  await blocking.query('begin; lock table counter in share mode')
  const switching =
    "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'update counter%'"
  await vi.waitFor(async () => expect(await storedRows(to, switching)).toHaveLength(1), { timeout: 20_000, interval: 5 })
  mover.process.kill('SIGSTOP')

  const pushOne = async () => expect((await push(other.publicUrl, pushes.next())).status).toBe(200)
  await vi.waitFor(pushOne, { timeout: 30_000, interval: 250 })
  mover.process.kill('SIGCONT')
  await blocking.query('rollback')
  blocking.release()
  expect(await endedJob(mover.asker, job)).toMatchObject({ state: 'failed' })
  await vi.waitFor(async () => expect(await mover.replicas()).toHaveLength(2), { timeout: 20_000 })
  const again = await vi.waitFor(() => startMove(mover.asker, to), { timeout: 20_000, interval: 200 })
  expect(await endedJob(mover.asker, again)).toMatchObject({ state: 'done' })
  await load.untilAnswered(load.answered() + 100)
  const answers = await load.stop()
  const stored = await storedBodies(to)
  expect(answers.filter(({ status, body }) => status === 200 && !stored.has(body))).toEqual([])
}, 120_000)
