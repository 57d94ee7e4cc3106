import { expect, onTestFinished, test, vi } from 'vitest'
import { distinctPushes } from '../support/network/push-load.ts'
import { startTcpProxy } from '../support/network/tcp-proxy.ts'
import { onPostgres } from '../support/relay/on-postgres.ts'
import { push, writeConfig } from '../support/relay/relay.ts'
import { inSeconds, runRelay } from '../support/relay/relay-process.ts'
import { temporaryFolder } from '../support/runner/temporary.ts'
import { withClient } from '../support/store/postgres-client.ts'
import { createDatabase } from '../support/store/postgres-database.ts'

const MOVE = 'another replica moves the store: this one writes no more until that is done'
const RETRY = 'the database cannot be reached while its store is moved; the relay tries again'

/** Marks the store as a move does just before it switches stores. The mark is valid while the connection is open. */
const PAUSING = [
  `create table moving (id integer primary key, state text not null, move_id text not null, peer text not null, address text not null,
    at_ms bigint not null, replica_id bigint not null, paused_at_ms bigint, backend_pid integer)`,
  `insert into moving values (1, 'pausing', 'other', 'elsewhere', '', 0, -1,
    (extract(epoch from clock_timestamp()) * 1000)::bigint + 3600000, pg_backend_pid())`,
  `insert into counter (name, value, base, version) values ('moving', 1, 0, 0) on conflict (name) do update set value = 1`,
]

test.each([
  ['while a move stops its writes', true],
  ['just as a move ends', false],
])('S18: a replica survives a restart of the database server %s', async (_when, isWaiting) => {
  const { url } = await createDatabase('nothing')
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const through = Object.assign(new URL(url), { port: String(proxy.port) }).href
  const relay = await runRelay(writeConfig(temporaryFolder(), 'http://127.0.0.1:9', { ...inSeconds, ...(await onPostgres(through)) }))
  onTestFinished(() => relay[Symbol.asyncDispose]())
  const { next } = distinctPushes(1)
  expect((await push(relay.publicUrl, next())).status).toBe(200)

  const retried = relay.logged(RETRY)
  const moved = relay.logged(MOVE)
  await withClient(url, async (client) => {
    for (const statement of PAUSING) await client.query(statement)
    await moved
    if (isWaiting) {
      await proxy.goDown()
      await retried
      await proxy.comeUp()
    }
    await client.query(`update moving set state = 'copying', backend_pid = null`)
    if (!isWaiting) await proxy.goDown()
    await client.query('drop table moving')
    await client.query(`update counter set value = 0 where name = 'moving'`)
  })
  if (!isWaiting) {
    await retried
    await proxy.comeUp()
  }
  // The same process answers, because no other process listens at its address.
  await vi.waitFor(async () => expect((await push(relay.publicUrl, next())).status).toBe(200), { timeout: 60_000, interval: 100 })
  expect(relay.process.exitCode).toBeNull()
})
