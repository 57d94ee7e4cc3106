import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { dispatcherOf, type Role } from '../../../src/core/domain/admin/replica.ts'
import { StorageFailure } from '../../../src/core/domain/errors.ts'
import { reserveEndpoint } from '../../../src/core/store/delivery/endpoints.ts'
import { saveSetting } from '../../../src/core/store/settings.ts'
import type { TransactionKind } from '../../../src/core/store/write-store.ts'
import { openReplicaTable } from '../../../src/server/postgres/admin/replica-table.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { shareRoles } from '../../../src/server/replicas/replica-lease.ts'
import { onlyLong } from '../../support/runner/long-form.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'

const LONG_MS = 600_000
/** How long a stuck transaction may delay others. A slow machine gets three times as long. */
const SECONDS_OWED_MS = 5000
const JANITOR: readonly Role[] = ['janitor']

async function open() {
  const { url, name } = await createDatabase()
  const openTable = () => {
    const table = openReplicaTable(url, { answerTimeoutMs: 5000 })
    onTestFinished(() => table.close())
    return table
  }
  const query = (sql: string, values: readonly unknown[] = []) =>
    withClient(url, async (client) => (await client.query<Record<string, unknown>>(sql, [...values])).rows)
  const join = (table = openTable(), { ttlMs = LONG_MS, endpoints = [] as readonly string[], name: called = 'one' } = {}) =>
    table.register({ name: called, version: '1', configFingerprint: 'abc', endpoints, atRestKeys: [], ttlMs, configuredAtMs: null })
  const expire = (id: number) => query('update replica set until_ms = 0 where id = $1', [id])
  return { url, name, openTable, query, join, expire }
}

async function openStore(url: string, id: () => number | null) {
  const store = await postgres.openWriteStore(url, { replicaId: id })
  onTestFinished(() => store.close())
  return store
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(() => client.end().catch(() => undefined))
  return client
}

const take = (roles: readonly Role[]) => () => ({ take: roles, giveUp: [] })

test('replicas that race for roles never get the same one, and end with equal shares', async () => {
  const { openTable, join, query, expire } = await open()
  await query("insert into endpoint (name, origin, settings) select 'e' || n, 'managed', '{}' from generate_series(1, 7) as n")
  const tables = [openTable(), openTable(), openTable()]
  const ids = await Promise.all(tables.map(async (table) => (await join(table)).id))
  const dead = await join(openTable())
  await tables[0]?.changeRoles(dead.id, take(['poller', dispatcherOf('1')]))
  await expire(dead.id)
  const held = new Map<number, readonly Role[]>()
  for (let turn = 0; turn < 10; turn++) {
    await Promise.all(
      tables.map(async (table, at) => {
        const id = ids[at] ?? 0
        held.set(id, await table.changeRoles(id, (assignment) => shareRoles(assignment, id)))
      }),
    )
  }
  const all = [...held.values()].flat()
  expect(all.toSorted()).toEqual(['janitor', 'poller', ...[1, 2, 3, 4, 5, 6, 7].map((id) => dispatcherOf(String(id)))].toSorted())
  const rows = await query('select name, replica_id::integer as id from role order by name')
  expect(rows).toEqual(
    [...held].flatMap(([id, roles]) => roles.map((name) => ({ name, id }))).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  )
  const counts = [...held.values()].map((roles) => roles.filter((role) => role.startsWith('dispatcher')).length)
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
})

test('a role of another replica cannot be taken, and a missing replica gets none', async () => {
  const { openTable, join } = await open()
  const [one, other] = [openTable(), openTable()]
  const [{ id }, { id: otherId }] = [await join(one), await join(other)]
  await one.changeRoles(id, take(JANITOR))
  await expect(other.changeRoles(otherId, take(JANITOR))).rejects.toThrow(/role/)
  await expect(other.changeRoles(otherId + 100, take(['poller']))).rejects.toThrow(/role/)
  expect((await one.list()).map(({ roles }) => roles)).toEqual([JANITOR, []])
  expect(await one.changeRoles(id, () => ({ take: ['poller'], giveUp: JANITOR }))).toEqual(['poller'])
})

test('the roles of a replica that is gone become free, and its next renewal tells it so', async () => {
  const { openTable, join, expire } = await open()
  const [one, other] = [openTable(), openTable()]
  const [{ id }, { id: otherId }] = [await join(one), await join(other)]
  await one.changeRoles(id, take(JANITOR))
  await expire(id)
  expect(await other.renew(otherId, LONG_MS, [])).toMatchObject({ lapsed: 1 })
  const before = await other.look()
  expect(
    await other.changeRoles(otherId, ({ live, holders }) => {
      expect([live, holders.size]).toEqual([[otherId], 0])
      return { take: JANITOR, giveUp: [] }
    }),
  ).toEqual(JANITOR)
  expect((await other.look()).roles).toBeGreaterThan(before.roles)
  expect(await one.renew(id, LONG_MS, [])).toBeNull()
})

test('a replica that comes back before it is declared dead keeps its roles', async () => {
  const { openTable, join, expire } = await open()
  const [one, other] = [openTable(), openTable()]
  const [{ id }, { id: otherId }] = [await join(one), await join(other)]
  await one.changeRoles(id, take(JANITOR))
  await expire(id)
  expect(await one.renew(id, LONG_MS, [])).toMatchObject({ lapsed: 0 })
  expect(await other.changeRoles(otherId, ({ holders }) => ({ take: [], giveUp: holders.get('janitor') === id ? [] : JANITOR }))).toEqual(
    [],
  )
  expect((await one.list()).map(({ roles }) => roles)).toEqual([JANITOR, []])
})

test('a renewal tells the concerns of a replica, until its lease is over', async () => {
  const { openTable, join, query, expire } = await open()
  const [one, other] = [openTable(), openTable()]
  const [{ id }] = [await join(one), await join(other)]
  const concern = {
    kind: 'reload_failed',
    endpoint: null,
    replica: null,
    title: "It's wrong",
    sinceMs: 7,
    evidence: ['\0'],
    todo: [],
  } as const
  await one.renew(id, LONG_MS, [concern])
  const told = async () => (await other.list()).map(({ concerns }) => concerns)
  expect(await told()).toEqual([[concern], []])
  await query(`update replica set concerns = '[{"kind":"of a later version"}]' where id = $1`, [id])
  expect(await told()).toEqual([[], []])
  await one.renew(id, LONG_MS, [concern])
  await expire(id)
  expect(await told()).toEqual([[], []])
})

test('all times of replicas are times of the server', async () => {
  const { openTable, join, query } = await open()
  const table = openTable()
  const { id, nowMs } = await join(table, { ttlMs: 5000 })
  const renewed = await table.renew(id, 7000, [])
  const [row] = await query('select started_at_ms, seen_at_ms, until_ms, extract(epoch from clock_timestamp()) * 1000 as now from replica')
  expect([Number(row?.started_at_ms), Number(row?.seen_at_ms)]).toEqual([nowMs, renewed?.nowMs])
  expect(Number(row?.until_ms)).toBe((renewed?.nowMs ?? 0) + 7000)
  expect(Math.abs(Number(row?.now) - nowMs)).toBeLessThan(5000)
})

test('a transaction for a role writes nothing if its replica was declared dead', async () => {
  const { url, openTable, join, query } = await open()
  const table = openTable()
  const { id } = await join(table)
  const store = await openStore(url, () => id)
  const write = (name: string, kind: TransactionKind) => store.transaction(async (tx) => saveSetting(tx, name, Buffer.from('x')), kind)
  await write('before', { ofRole: 'any' })
  await table.remove(id)
  await expect(write('after', { ofRole: 'any' })).rejects.toThrow(StorageFailure)
  await write('of nobody', {})
  expect(await query("select name from setting where name in ('before', 'after', 'of nobody') order by name")).toEqual([
    { name: 'before' },
    { name: 'of nobody' },
  ])
})

test('a live replica writes nothing for a role that it does not hold', async () => {
  const { url, openTable, join } = await open()
  const table = openTable()
  const { id } = await join(table)
  await table.changeRoles(id, take(JANITOR))
  const store = await openStore(url, () => id)
  const write = (ofRole: 'poller' | 'janitor') => store.transaction(async (tx) => saveSetting(tx, ofRole, Buffer.from('x')), { ofRole })
  await write('janitor')
  await expect(write('poller')).rejects.toThrow(StorageFailure)
})

test('a replica that joined again writes only under its new number', async () => {
  const { url, openTable, join } = await open()
  const table = openTable()
  const { id } = await join(table)
  let current = id
  const store = await openStore(url, () => current)
  await table.remove(id)
  const begun = Promise.withResolvers<void>()
  const late = store.transaction(
    async (tx) => {
      await begun.promise
      await saveSetting(tx, 'late', Buffer.from('x'))
    },
    { ofRole: 'any' },
  )
  current = (await join(table)).id
  begun.resolve()
  await expect(late).rejects.toThrow(StorageFailure)
  await store.transaction(async (tx) => saveSetting(tx, 'new', Buffer.from('x')), { ofRole: 'any' })
})

/** Opens a transaction for a role, which stays open until the test calls `letGo`. */
async function holdTransaction(url: string, id: number) {
  const store = await openStore(url, () => id)
  const [inside, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const done = store.transaction(
    async (tx) => {
      await tx.listEndpoints()
      inside.resolve()
      await letGo.promise
      await saveSetting(tx, 'fenced', Buffer.from('x'))
    },
    { ofRole: 'any' },
  )
  await inside.promise
  return { done, letGo: letGo.resolve }
}

test('declaring a replica dead waits for its writes, and a renewal waits for nothing', async () => {
  const { url, openTable, join, expire, query } = await open()
  const [one, other] = [openTable(), openTable()]
  const [{ id }, { id: otherId }] = [await join(one), await join(other)]
  await one.changeRoles(id, take(JANITOR))
  const { done, letGo } = await holdTransaction(url, id)
  // A renewal that waited for the open transaction would hang here.
  expect(await one.renew(id, LONG_MS, [])).not.toBeNull()
  await expire(id)
  let isTaken = false
  const taken = other.changeRoles(otherId, take(JANITOR)).then((roles) => {
    isTaken = true
    return roles
  })
  const waiting = () => query("select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")
  await vi.waitFor(async () => expect(await waiting()).not.toEqual([]), { interval: 20 })
  expect(isTaken).toBe(false)
  letGo()
  await done
  expect(await taken).toEqual(JANITOR)
  expect(await query("select name from setting where name = 'fenced'")).toHaveLength(1)
})

test('a replica that stops in a transaction delays the others for a few seconds at most', async () => {
  const { url, openTable, join, expire, query } = await open()
  const [one, other] = [openTable(), openTable()]
  const [{ id }, { id: otherId }] = [await join(one), await join(other)]
  await one.changeRoles(id, take(JANITOR))
  const { done, letGo } = await holdTransaction(url, id)
  const outcome = done.then(
    () => 'written',
    () => 'failed',
  )
  await expire(id)
  const beganMs = performance.now()
  const roles = await vi.waitFor(() => other.changeRoles(otherId, take(JANITOR)), { interval: 100 })
  expect(roles).toEqual(JANITOR)
  expect(performance.now() - beganMs).toBeLessThan(3 * SECONDS_OWED_MS)
  letGo()
  expect(await outcome).toBe('failed')
  expect(await query("select name from setting where name = 'fenced'")).toEqual([])
})

test('an endpoint counts as configured if the config of any present replica names it', async () => {
  const { url, openTable, join } = await open()
  const [one, other] = [openTable(), openTable()]
  const [{ id }, { id: otherId }] = [await join(one, { endpoints: ['a', 'b'] }), await join(other, { endpoints: ['b', 'c"\\'] })]
  const store = await openStore(url, () => id)
  const named = () => store.transaction(async (tx) => (await tx.endpointsConfigured()).names, { ofRole: 'any' })
  expect([...(await named())].toSorted()).toEqual(['a', 'b', 'b', 'c"\\'])
  await one.configure(id, { configFingerprint: 'def', endpoints: ['d'], atRestKeys: [] })
  await other.remove(otherId)
  expect(await named()).toEqual(['d'])
  expect((await one.list()).map(({ configFingerprint }) => configFingerprint)).toEqual(['def'])
})

test('a replica serves any managed endpoint, but of the config endpoints only those it defines', async () => {
  const { openTable, join, query } = await open()
  await query(
    "insert into endpoint (name, origin, settings) values ('a', 'config', '{}'), ('b', 'config', '{}'), ('c', 'managed', '{}'), ('d', 'config', '{}')",
  )
  const [one, other] = [openTable(), openTable()]
  const [{ id }, { id: otherId }] = [await join(one, { endpoints: ['a', 'b'] }), await join(other, { endpoints: ['b'] })]
  // No present replica defines this endpoint.
  await one.changeRoles(id, take([dispatcherOf('4')]))
  for (let turn = 0; turn < 3; turn++) {
    for (const [table, of] of [[other, otherId] as const, [one, id] as const]) {
      await table.changeRoles(of, (assignment) => {
        expect(assignment.only).toEqual(
          new Map([
            [dispatcherOf('1'), [id]],
            [dispatcherOf('2'), [id, otherId]],
            [dispatcherOf('4'), []],
          ]),
        )
        return shareRoles(assignment, of)
      })
    }
  }
  const holders = new Map((await one.list()).flatMap(({ id: of, roles }) => roles.map((role) => [role, of] as const)))
  expect(holders.get(dispatcherOf('1'))).toBe(id)
  expect([...holders.keys()].toSorted()).toEqual([...[1, 2, 3].map((of) => dispatcherOf(String(of))), 'janitor', 'poller'].toSorted())
})

test('the counters that other replicas watch do not rise before the commit', async () => {
  const { url, openTable, join } = await open()
  const table = openTable()
  await join(table)
  const store = await openStore(url, () => null)
  const first = await table.look()
  await store.transaction(async () => undefined)
  expect(await table.look()).toEqual(first)
  const letGo = Promise.withResolvers<void>()
  const inside = Promise.withResolvers<void>()
  const done = store.transaction(
    async (tx) => {
      await tx.queueComposed({ endpointId: await reserveEndpoint(tx, 0), parcelId: 0, body: Buffer.from('{}'), nowMs: 0 })
      inside.resolve()
      await letGo.promise
    },
    { announced: true },
  )
  await inside.promise
  expect(await table.look()).toEqual(first)
  letGo.resolve()
  await done
  expect(await table.look()).toEqual({ ...first, sequence: first.sequence + 1, orders: first.orders + 1 })
})

test('a renewal needs no lock on roles, so it works while they are changed', async () => {
  const { url, openTable, join } = await open()
  const table = openTable()
  const { id } = await join(table)
  const client = await connect(url)
  await client.query("begin; select value from counter where name = 'roles' for update")
  expect(await table.renew(id, LONG_MS, [])).not.toBeNull()
  await client.query('rollback')
})

onlyLong(test)('renewals that meet a lock do not pile up waiting connections, and go on afterwards', async () => {
  const { url, openTable, join, query } = await open()
  const table = openReplicaTable(url, { answerTimeoutMs: 1500 })
  onTestFinished(() => table.close())
  const { id } = await join(openTable())
  await query("insert into lesson (body) values ('taught')")
  const holder = await connect(url)
  await holder.query('begin')
  await holder.query('select 1 from replica where id = $1 for update', [id])
  const waiting = () => query("select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")
  const counts: number[] = []
  let isAnyMet = false
  for (let turn = 0; turn < 4; turn++) {
    // The callers give up long before the lock is released, as a relay does.
    let areThere = true
    const left = Promise.allSettled([table.renew(id, LONG_MS, []), table.lessons.take(id, 10)]).finally(() => {
      areThere = false
    })
    while (areThere) {
      const found = await waiting()
      if (found.length > 0) isAnyMet = true
    }
    expect((await left).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    counts.push((await waiting()).length)
  }
  expect(isAnyMet).toBe(true)
  // Each of the two calls may have left one waiting connection.
  expect(Math.max(...counts)).toBeLessThanOrEqual(2)
  await holder.query('rollback')
  expect(await table.renew(id, 7000, [])).toMatchObject({ lapsed: 0 })
  expect(await table.lessons.take(id, 10)).toEqual(['taught'])
  const [row] = await query('select (until_ms - seen_at_ms)::integer as ttl from replica')
  expect(row).toEqual({ ttl: 7000 })
})
