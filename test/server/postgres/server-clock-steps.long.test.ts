import { expect, onTestFinished, test } from 'vitest'
import type { Role } from '../../../src/core/domain/admin/replica.ts'
import { openReplicaTable } from '../../../src/server/postgres/admin/replica-table.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { HOUR_MS } from '../../support/runner/constants.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

const TTL_MS = 600_000
const JANITOR: readonly Role[] = ['janitor']

/** Makes a clock that the test sets. The search path finds it before the clock of the server. */
const CLOCK = (database: string) => `
  create table clock_step (ms bigint not null);
  insert into clock_step values (0);
  create function public.clock_timestamp() returns timestamptz language sql volatile as
    'select pg_catalog.clock_timestamp() + (select ms from clock_step) * interval ''1 millisecond''';
  alter database "${database}" set search_path = public, pg_catalog`

/** Opens two replicas on a server whose clock the test sets. The first has the role of janitor. */
async function open() {
  const { url, name } = await createDatabase()
  await (await postgres.openWriteStore(url)).close()
  await withClient(url, (client) => client.query(CLOCK(name)))
  let passedMs = 0
  const join = async (called: string) => {
    const table = openReplicaTable(url, { answerTimeoutMs: 5000, monotonic: () => performance.now() + passedMs })
    onTestFinished(() => table.close())
    const replica = {
      name: called,
      version: '1',
      configFingerprint: 'abc',
      endpoints: [],
      atRestKeys: [],
      ttlMs: TTL_MS,
      configuredAtMs: null,
    }
    const { id } = await table.register(replica)
    return {
      id,
      renew: async () => await table.renew(id, TTL_MS, []),
      /** Takes the role of janitor if it is free. Returns the name of the replica that has it. */
      share: async () => {
        await table.changeRoles(id, ({ holders }) => ({ take: holders.has('janitor') ? [] : JANITOR, giveUp: [] }))
        return (await table.list()).find(({ roles }) => roles.includes('janitor'))?.name
      },
    }
  }
  const step = (ms: number) => withClient(url, (client) => client.query('update clock_step set ms = ms + $1', [ms]))
  const [one, other] = [await join('one'), await join('other')]
  expect(await one.share()).toBe('one')
  return {
    one,
    other,
    join,
    step,
    async pass(ms: number) {
      passedMs += ms
      await step(ms)
    },
  }
}

test('without a clock step, a replica is replaced when its lease expires', async () => {
  const { other, pass } = await open()
  await pass(TTL_MS - 60_000)
  expect([await other.renew(), await other.share()]).toEqual([expect.objectContaining({ lapsed: 0 }), 'one'])
  await pass(60_001)
  expect([await other.renew(), await other.share()]).toEqual([expect.objectContaining({ lapsed: 1 }), 'other'])
})

test('P13: a live replica keeps its role when the server’s clock steps forward', async () => {
  const { one, other, pass, step } = await open()
  await step(HOUR_MS)
  // Neither before nor after the first renewal may the other replica take the role.
  expect(await other.share()).toBe('one')
  await other.renew()
  expect(await other.share()).toBe('one')
  await pass(TTL_MS - 60_000)
  expect([await other.renew(), await other.share()]).toEqual([expect.anything(), 'one'])
  expect(await one.renew()).not.toBeNull()
  await pass(60_001)
  expect([await other.renew(), await other.share(), await one.renew()]).toEqual([expect.anything(), 'one', expect.anything()])
})

test('a replica that dies as the server’s clock steps forward is replaced at the usual time', async () => {
  const { other, pass, step } = await open()
  await step(HOUR_MS)
  await other.renew()
  expect(await other.share()).toBe('one')
  await pass(TTL_MS + 1)
  await other.renew()
  expect(await other.share()).toBe('other')
})

test('P13: a replica that dies as the clock is put back is replaced at the usual time', async () => {
  const { other, pass, step } = await open()
  await step(-HOUR_MS)
  expect([await other.renew(), await other.share()]).toEqual([expect.objectContaining({ lapsed: 1 }), 'one'])
  await pass(TTL_MS - 60_000)
  expect([await other.renew(), await other.share()]).toEqual([expect.objectContaining({ lapsed: 0 }), 'one'])
  await pass(60_001)
  expect([await other.renew(), await other.share()]).toEqual([expect.objectContaining({ lapsed: 1 }), 'other'])
})

test('a live replica keeps its roles when the server’s clock is put back', async () => {
  const { one, other, pass, step } = await open()
  await step(-HOUR_MS)
  await other.renew()
  expect(await other.share()).toBe('one')
  expect(await one.renew()).not.toBeNull()
  await pass(TTL_MS - 60_000)
  expect([await other.renew(), await other.share(), await one.renew()]).toEqual([expect.anything(), 'one', expect.anything()])
})
