import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { postgres } from '../../src/server/postgres/postgres-engine.ts'
import { SERVER_STORES } from '../../src/server/postgres/server-stores.ts'
import { undoMove } from '../../src/upkeep/moving/store-in-use.ts'
import { sqlite } from '../../src/upkeep/sqlite-engine.ts'
import { distinctPushes, startLoad } from '../support/network/push-load.ts'
import { receiverOfTest } from '../support/network/webhook-receiver.ts'
import { loadConfig } from '../support/relay/load-config.ts'
import { endedJob, expectInOrder, longestPauseMs, postJson, startMove } from '../support/relay/moves-of-relay.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { ADMIN, ask, logIn, writeConfig } from '../support/relay/relay.ts'
import { inSeconds, runRelay } from '../support/relay/relay-process.ts'
import { NO_CARRIER } from '../support/runner/constants.ts'
import { byForm } from '../support/runner/long-form.ts'
import { withinOwed } from '../support/runner/real-time.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { createDatabase } from '../support/store/postgres-database.ts'
import { storedBodies } from '../support/store/stored-rows.ts'

/** At least this many pushes are answered before and after each move. */
const SOME = byForm(40, 200)
const LOAD = { atOnce: byForm(2, 6), restMs: byForm(50, 0) }

test('a relay under load moves to PostgreSQL and back and loses nothing', async () => {
  const folder = temporaryFolder()
  const database = (await createDatabase('nothing')).url
  const file = join(folder, 'back.db')
  const { secrets } = await onPostgres(database)
  const config = writeConfig(folder, NO_CARRIER, {
    ...inSeconds,
    secrets,
    delivery: { schedule: ['100ms', '200ms'], allowNetworks: ['127.0.0.0/8'] },
  })
  const receiver = await receiverOfTest()
  await using relay = await runRelay(config)
  const asker = { internalUrl: relay.internalUrl, token: await logIn(relay.internalUrl, ADMIN) }
  expect(await postJson(asker, '/relay/endpoints', { name: 'shop', url: receiver.url })).toMatchObject({ status: 201 })

  const { next } = distinctPushes(20)
  const load = startLoad(relay.publicUrl, LOAD.atOnce, next, { isPatient: true, restMs: LOAD.restMs })
  await load.untilAnswered(SOME)
  const there = await startMove(asker, database)
  expect(await endedJob(asker, there)).toMatchObject({ state: 'done', failure: null })
  // Wait until the senders of the load no longer use connections to the first relay.
  await load.untilAnswered(load.answered() + 3 * SOME)
  const back = await startMove(asker, `sqlite:${file}`)
  expect(await endedJob(asker, back)).toMatchObject({ state: 'done' })
  await load.untilAnswered(load.answered() + SOME)
  const answers = await load.stop()

  // While one relay hands the listeners to the other, connections are refused for a moment, and senders retry at once.
  const failed = answers.filter(({ status }) => status !== 200 && status !== 503)
  const seconds = new Set(failed.map(({ begunAtMs }) => Math.floor(begunAtMs / 1000)))
  expect([failed.filter(({ status }) => status !== null), seconds.size <= 4], `${failed.length} failed`).toEqual([[], true])
  expect(answers.filter(({ status, retryAfter }) => status === 503 && retryAfter === null)).toEqual([])
  expect(longestPauseMs(answers)).toBeLessThan(withinOwed(5000))
  const acknowledged = answers.filter(({ status }) => status === 200).map(({ body }) => body)
  const stored = await storedBodies(file)
  expect(acknowledged.filter((body) => !stored.has(body))).toEqual([])
  await vi.waitFor(() => expect(expectInOrder(receiver)).toBeGreaterThanOrEqual(acknowledged.length), { timeout: 60_000 })

  await expect(sqlite.openWriteStore(join(folder, 'relay.db'))).rejects.toThrow('was moved to')
  await expect(postgres.openWriteStore(database)).rejects.toThrow('was moved to')
  // The token of the first store is still accepted, and the jobs of both moves are listed.
  const jobs: unknown = await (await ask(asker.internalUrl, asker.token, '/relay/jobs')).json()
  expect(jobs).toMatchObject({ jobs: [{ state: 'done' }, { state: 'done' }] })
  // The relay on the new store reports the end of each move, and the earlier events have moved with the store.
  const told = async () => await (await ask(asker.internalUrl, asker.token, '/relay/operator-events?event=job_ended')).json()
  const ended = { event: 'job_ended', job: { kind: 'move' }, state: 'done' }
  await vi.waitFor(async () => expect(await told()).toMatchObject({ events: [ended, ended], next: null }), { timeout: 60_000 })
  const audit: unknown = await (await ask(asker.internalUrl, asker.token, '/relay/audit')).json()
  const moved = { action: 'store.move_started', target: { kind: 'store' } }
  expect(audit).toMatchObject({ actions: [moved, moved, { action: 'endpoint.added' }] })

  // The store went to a database and came back, so there is no move to undo.
  expect(await undoMove(loadConfig(config), SERVER_STORES)).toMatchObject({
    kind: 'in_use',
    store: file,
    usedBy: `pid ${relay.process.pid}`,
  })
  await relay.stop()
  await using again = await runRelay(config)
  // The config still names the first store, but the relay opens the store in use.
  const response = await ask(again.internalUrl, asker.token, '/relay/jobs')
  expect([response.status, existsSync(file)]).toEqual([200, true])
})
