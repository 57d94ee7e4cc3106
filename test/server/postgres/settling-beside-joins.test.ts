import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { createPostgresWriter } from '../../../src/server/postgres/postgres.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { createPostgresWriteStore } from '../../../src/server/postgres/postgres-write-store.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { NOON } from '../../support/runner/constants.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'
import { storedNumber, storedRows } from '../../support/store/stored-rows.ts'
import { openStore } from '../../support/store/write-side.ts'

async function openWorld() {
  const store = await openStore(NOON, postgres)
  const endpoint = await addEndpoint(store.writes, NOON)
  for (const id of ['1001', '1002', '1003']) await store.push({ trackingIds: [id] })
  const parcels = await Promise.all(['1001', '1002', '1003'].map((id) => store.parcelIdOf(id)))
  const connect = async () => {
    const client = new pg.Client({ connectionString: store.path })
    await client.connect()
    onTestFinished(() => client.end())
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const blocked = `select count(*) from pg_stat_activity where ${rows[0]?.pid ?? 0} = any(pg_blocking_pids(pid))`
    /** Resolves when another transaction waits for this one. */
    const isWaitedFor = () => expect.poll(() => storedNumber(store.path, blocked), { timeout: 60_000 }).toBe(1)
    /** Locks a parcel, as a join does first. */
    const lock = async (id: number) => {
      await client.query('begin')
      await client.query('select id from parcel where id = $1 for update', [id])
    }
    const join = async (from: number, into: number) => {
      await client.query('update delivery set parcel_id = $2 where parcel_id = $1', [from, into])
      await client.query('delete from parcel where id = $1', [from])
      await client.query('commit')
    }
    return { isWaitedFor, lock, join }
  }
  return { ...store, endpoint, parcels, connect }
}

test('7.3: settling a delivery locks the parcel into which one or two joins moved the delivery', {
  timeout: 120_000,
}, async () => {
  const { writes, path, endpoint, parcels, connect } = await openWorld()
  const [first = 0, second = 0, third = 0] = parcels
  const { claimed } = await writes.dispatchRound({ settled: [], inFlight: {}, allowance: {}, claimsMax: 100, nowMs: NOON })
  const delivery = claimed.find((one) => one.parcelId === first)
  if (delivery === undefined) throw new Error(`nothing of parcel ${first} is due at ${endpoint.id}`)
  const result = { kind: 'accepted' as const, status: 200, durationMs: 1, answerStart: new Uint8Array() }
  const settled = {
    ...delivery,
    result,
    atMs: NOON,
    random: 0.5,
    round: 0,
    attempts: 1,
    settlement: { state: 'delivered' as const },
  }
  const [one, other] = [await connect(), await connect()]
  await one.lock(first)
  await other.lock(second)
  const free = `select id from parcel where id = ${third} for update skip locked`
  const store = createPostgresWriteStore(createPostgresWriter(openTestPool(path, 2), { named: true }))
  const settling = store.transaction(async (tx) => {
    tx.saveSettlements([settled], [], NOON)
    // The server answers this only after it has taken the locks for the settlement.
    await tx.listEndpoints()
    return await storedRows(path, free)
  })
  await one.isWaitedFor()
  await one.join(first, second)
  await other.isWaitedFor()
  await other.join(second, third)
  expect(await settling).toEqual([])
})
