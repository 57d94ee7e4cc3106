import { appendFileSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { saveSetting } from '../../../src/core/store/settings.ts'
import { createLostCommits } from '../../../src/server/postgres/admin/lost-commits.ts'
import { openReplicaTable } from '../../../src/server/postgres/admin/replica-table.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { SERVER_USER } from '../../../src/trial/demo/postgres/throwaway-server.ts'
import { pushBody } from '../../support/history/builders.ts'
import { NOON } from '../../support/runner/constants.ts'
import { type ForgetfulServer, startForgetful } from '../../support/store/forgetful-server.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { storedNumber } from '../../support/store/stored-rows.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

let server: ForgetfulServer

beforeAll(async () => {
  server = await startForgetful()
})
afterAll(() => server[Symbol.asyncDispose]())

const pushOf = (id: string, text: string) => incomingPush(pushBody({ trackingIds: [id], texts: { en: text } }), NOON)

/** Repeats the work until it succeeds, because the first connections still belong to the old server. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  const done: { readonly value: T }[] = []
  const tryOnce = async () => {
    if (done.length === 0) done.push({ value: await work() })
    return done.length
  }
  await expect.poll(tryOnce, { timeout: 60_000 }).toBe(1)
  const [first] = done
  if (first === undefined) throw new Error('nothing was done')
  return first.value
}

test('S18: a server that lost its last commits gives no parcel the texts of another', {
  timeout: 240_000,
}, async () => {
  const place = await server.newDatabase()
  const { reads, record } = await openStore(NOON, postgres, place)
  const textOf = async (id: string) => (await reads.findParcel(id))?.entries[0]?.texts.en?.detailed
  await record(pushOf('1001', 'Kept'))
  await server.keep()
  await again(() => record(pushOf('1002', 'Lost')))
  expect(await again(() => textOf('1002'))).toBe('Lost')

  await server.lose()
  const other = await openStore(NOON, postgres, place)
  await other.record(pushOf('1003', 'Other'))

  expect(await again(() => textOf('1003'))).toBe('Other')
  expect(await again(() => textOf('1002'))).toBeUndefined()
  await again(() => record(pushOf('1004', 'Lost')))
  expect([await textOf('1001'), await textOf('1003'), await textOf('1004')]).toEqual(['Kept', 'Other', 'Lost'])
  expect(await storedNumber(place, 'select count(*) from inbox')).toBe(3)
})

const LONG_MS = 600_000

/** Opens a replica on a server, and reports whether its writes are accepted. */
async function joinOn(place: string) {
  const current = { id: 0 }
  const lostCommits = createLostCommits()
  const store = await postgres.openWriteStore(place, { replicaId: () => current.id, lostCommits })
  const table = openReplicaTable(place, { answerTimeoutMs: 5000, lostCommits })
  onTestFinished(async () => {
    await table.close()
    await store.close()
  })
  const join = async () => {
    const replica = {
      name: 'one',
      version: '1',
      configFingerprint: 'abc',
      endpoints: [],
      atRestKeys: [],
      ttlMs: LONG_MS,
      configuredAtMs: null,
    }
    current.id = (await table.register(replica)).id
    return current.id
  }
  await join()
  const write = async () => {
    try {
      await store.transaction(async (tx) => saveSetting(tx, 'held', Buffer.from('x')), { ofRole: 'any' })
      return 'written'
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('the server has lost commits')) return 'refused'
      throw error
    }
  }
  return {
    place,
    join,
    id: () => current.id,
    write: () => again(write),
    renew: () => again(async () => (await table.renew(current.id, LONG_MS, [])) !== null),
    list: () => again(() => table.list()),
  }
}

test('S18: a lease ends if the server has lost its last commits, but not if it only restarted', { timeout: 240_000 }, async () => {
  const replica = await joinOn(await server.newDatabase())
  expect(await replica.write()).toBe('written')
  await server.keep()
  expect([await replica.write(), await replica.renew(), await replica.write()]).toEqual(['written', true, 'written'])
  await server.stop('immediate')
  await server.start()
  expect([await replica.renew(), await replica.write()]).toEqual([true, 'written'])
  const { record } = await openStore(NOON, postgres, replica.place)
  await record(pushOf('1002', 'Lost'))
  expect(await replica.write()).toBe('written')

  await server.lose()
  const other = await openStore(NOON, postgres, replica.place)
  // The other replica raises the counter above its earlier value.
  for (const id of ['1003', '1004', '1005']) await other.record(pushOf(id, 'Other'))
  expect([await replica.write(), await replica.renew(), await replica.write()]).toEqual(['refused', false, 'refused'])

  const lostId = replica.id()
  expect(await replica.join()).not.toBe(lostId)
  expect([await replica.renew(), await replica.write()]).toEqual([true, 'written'])
  await expect.poll(async () => (await replica.list()).map(({ id }) => id), { timeout: 60_000 }).toEqual([replica.id()])
})

test('S18: a promoted server ends a lease, because it may lack the last commits', { timeout: 240_000 }, async () => {
  const replica = await joinOn(await server.newDatabase())
  expect(await replica.write()).toBe('written')
  await server.stop()
  const signal = join(server.folder, 'data', 'recovery.signal')
  writeFileSync(signal, '')
  if (SERVER_USER.uid !== undefined) chownSync(signal, SERVER_USER.uid, SERVER_USER.gid)
  appendFileSync(join(server.folder, 'data', 'postgresql.auto.conf'), "restore_command = 'false'\n")
  await server.start()
  expect([await replica.write(), await replica.renew()]).toEqual(['refused', false])
  await replica.join()
  expect([await replica.renew(), await replica.write()]).toEqual([true, 'written'])
})

/** Copies all tables. `RESTORE` brings them back to these copies while the server runs, as `pg_restore --clean` does. */
const RESTORABLE = `
  create schema kept;
  do $$ declare t text; begin
    for t in select table_name from information_schema.tables where table_schema = 'public' loop
      execute format('create table kept.%I as table public.%I', t, t);
    end loop;
  end $$`
const RESTORE = `
  set session_replication_role = replica;
  alter table counter rename to gone;
  create table counter (like gone including all);
  drop table gone;
  do $$ declare t text; begin
    for t in select table_name from information_schema.tables where table_schema = 'public' loop
      execute format('delete from public.%I', t);
      execute format('insert into public.%I overriding system value select * from kept.%I', t, t);
    end loop;
  end $$;
  select setval(pg_get_serial_sequence('content', 'id'), (select max(id) from content))`

test('S18: tables restored while the server runs give no parcel the texts of another', async () => {
  const place = await server.newDatabase()
  const order = (sql: string) => withClient(place, (client) => client.query(sql))
  const { reads, record } = await openStore(NOON, postgres, place)
  const textOf = async (id: string) => (await reads.findParcel(id))?.entries[0]?.texts.en?.detailed
  await record(pushOf('1001', 'Kept'))
  await order(RESTORABLE)
  await record(pushOf('1002', 'Lost'))
  expect(await textOf('1002')).toBe('Lost')
  await order(RESTORE)
  const other = await openStore(NOON, postgres, place)
  for (const id of ['1003', '1004', '1005']) await other.record(pushOf(id, `Other ${id}`))
  expect([await again(() => textOf('1003')), await textOf('1002')]).toEqual(['Other 1003', undefined])
  await again(() => record(pushOf('1006', 'Lost')))
  expect((await other.reads.findParcel('1006'))?.entries[0]?.texts.en?.detailed).toBe('Lost')
})
