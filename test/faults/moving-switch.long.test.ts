import { expect, test, vi } from 'vitest'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import { endedJob, startMove } from '../support/relay/moves-of-relay.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, ask, logIn, push, writeConfig } from '../support/relay/relay.ts'
import { runRelay } from '../support/relay/relay-process.ts'
import { startReplica } from '../support/relay/replica-processes.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm, LONG } from '../support/runner/long-form.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { createDatabase } from '../support/store/postgres-database.ts'
import { openTestPool } from '../support/store/postgres-pool.ts'
import { storedBodies, storedRows } from '../support/store/stored-rows.ts'

/** The load goes on when pushes are refused. In `npm test` it is small. */
const LOAD = { restMs: byForm(150, 0), isPatient: true }

test('a replica killed during the switch of its move leaves the others on the old database', async () => {
  const [from, to] = [(await createDatabase('nothing')).url, (await createDatabase('nothing')).url]
  const config = writeConfig(temporaryFolder(), NO_CARRIER, await onPostgres(from))
  await using mover = await runRelay(config)
  await using other = await runRelay(config)
  const pushes = distinctPushes(20)
  const load = startLoad(other.publicUrl, 4, pushes.next, LOAD)
  await load.untilAnswered(byForm(30, 100))
  await startMove({ internalUrl: mover.internalUrl, token: await logIn(mover.internalUrl, ADMIN) }, to)
  const state = async () => (await storedRows<{ state: string }>(from, 'select state from moving'))[0]?.state
  await vi.waitFor(async () => expect(await state()).toBe('pausing'), { timeout: 60_000, interval: 5 })
  mover.process.kill('SIGKILL')
  const asker = { internalUrl: other.internalUrl, token: await logIn(other.internalUrl, ADMIN) }
  const jobs = async (): Promise<unknown> => (await ask(asker.internalUrl, asker.token, '/relay/jobs')).json()
  await vi.waitFor(async () => expect(await jobs()).toMatchObject({ jobs: [{ state: 'failed' }] }), { timeout: 60_000, interval: 250 })
  // The other replica may refuse a new move until it has recovered from the failed one.
  const job = await vi.waitFor(() => startMove(asker, to), { timeout: 60_000, interval: 200 })
  expect(await endedJob(asker, job)).toMatchObject({ state: 'done' })
  await load.untilAnswered(load.answered() + byForm(30, 100))
  const answers = await load.stop()
  const stored = await storedBodies(to)
  expect(answers.filter(({ status, body }) => status === 200 && !stored.has(body))).toEqual([])
})

// `npm test` runs only the test above.
test.each(LONG ? ['stopped'] : [])('a replica that is %s during the switch of its move rejoins on the old database', async () => {
  const [from, to] = [(await createDatabase('nothing')).url, (await createDatabase('nothing')).url]
  const config = writeConfig(temporaryFolder(), NO_CARRIER, await onPostgres(from))
  await using mover = await startReplica(config)
  await using other = await startReplica(config)
  const pushes = distinctPushes(20)
  const load = startLoad(other.publicUrl, 4, pushes.next, LOAD)
  await load.untilAnswered(100)
  const stateAt = async (place: string) => (await storedRows<{ state: string }>(place, 'select state from moving'))[0]?.state
  const job = await startMove(mover.asker, to)
  // A switch updates the table `counter` of the new store last, while it locks the old store. The test locks that table to stop the switch there.
  await vi.waitFor(async () => expect(await stateAt(to)).toBe('receiving'), { timeout: 60_000, interval: 5 })
  const blocking = await openTestPool(to).connect()
  await blocking.query('begin; lock table counter in share mode')
  const switching =
    "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'update counter%'"
  await vi.waitFor(async () => expect(await storedRows(to, switching)).toHaveLength(1), { timeout: 60_000, interval: 5 })
  mover.process.kill('SIGSTOP')

  const pushOne = async () => expect((await push(other.publicUrl, pushes.next())).status).toBe(200)
  await vi.waitFor(pushOne, { timeout: 60_000, interval: 250 })
  mover.process.kill('SIGCONT')
  await blocking.query('rollback')
  blocking.release()
  expect(await endedJob(mover.asker, job)).toMatchObject({ state: 'failed' })
  await vi.waitFor(async () => expect(await mover.replicas()).toHaveLength(2), { timeout: 60_000 })
  const again = await vi.waitFor(() => startMove(mover.asker, to), { timeout: 60_000, interval: 200 })
  expect(await endedJob(mover.asker, again)).toMatchObject({ state: 'done' })
  await load.untilAnswered(load.answered() + byForm(30, 100))
  const answers = await load.stop()
  const stored = await storedBodies(to)
  expect(answers.filter(({ status, body }) => status === 200 && !stored.has(body))).toEqual([])
})
