import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createBudgetStore } from '../../../src/server/postgres/polling/postgres-shared-carrier.ts'
import { createPostgresWriter } from '../../../src/server/postgres/postgres.ts'
import { createStepByStepBudget, randomRequests } from '../../core/domain/polling/step-by-step-budget.ts'
import { startTcpProxy } from '../../support/network/tcp-proxy.ts'
import { casesOf } from '../../support/runner/long-form.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'

const LIMITS = { intervalUs: 1000, headStartUs: 1_000_000, callsPerDay: 1000, concurrency: 5, slotMs: 60_000 }
const asking = (caller: string, names: readonly string[]) => ({
  caller,
  names,
  apps: 0,
  schedule: names.length,
  ended: [],
  pauseMs: 0,
  atMostMs: null,
})

test('the stored row answers random requests as a budget in memory does', async () => {
  const { url } = await createDatabase()
  const pool = openTestPool(url)
  await pool.query('create table test_clock as select 0::bigint as at_ms')
  const store = createBudgetStore(createPostgresWriter(pool, { named: true }), sql<number>`(select at_ms from test_clock)`)
  for (const { nowMs, request, limits, answered } of randomRequests(4711, createStepByStepBudget(), casesOf(1000, 200))) {
    await pool.query('update test_clock set at_ms = $1', [nowMs])
    expect(await store.settle(request, limits)).toEqual(answered)
  }
})

test('replicas that ask at the same time never get the same slot twice, and all slots are used', async () => {
  const { url } = await createDatabase()
  const stores = ['one', 'two', 'three'].map((caller) => ({
    caller,
    store: createBudgetStore(createPostgresWriter(openTestPool(url), { named: true })),
  }))
  const answers = await Promise.all(
    stores.flatMap(({ caller, store }) => [1, 2, 3].map((nth) => store.settle(asking(caller, [`${caller}-${nth}`]), LIMITS))),
  )
  expect(answers.map(({ callsToday }) => callsToday).toSorted((one, other) => one - other)).toEqual([1, 2, 3, 4, 5, 5, 5, 5, 5])
  expect(answers.filter(({ granted }) => granted === 1)).toHaveLength(5)
})

test('the row is locked for one round trip, because the update and commit are sent together', async () => {
  const { url } = await createDatabase()
  const through = new URL(url)
  const proxy = await startTcpProxy(Number(through.port), { awayMs: 20 })
  through.port = String(proxy.port)
  const store = createBudgetStore(createPostgresWriter(openTestPool(through.href), { named: true }))
  await store.settle(asking('one', ['a']), LIMITS)
  const before = proxy.trips()
  await store.settle(asking('one', ['b']), LIMITS)
  expect(proxy.trips() - before).toBe(2)
})
