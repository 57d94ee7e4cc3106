import { expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { takePoolerParameter } from '../../../src/server/postgres/postgres-pool.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { NOON } from '../../support/runner/constants.ts'
import { testWith } from '../../support/runner/test-with.ts'
import { contentsOf, moveStore, placeOf } from '../../support/store/moving.ts'
import { startPgbouncer } from '../../support/store/pgbouncer.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { writeSeededStore } from '../../support/store/seeded-store.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'
import { dropLeftStores } from '../../upkeep/moving/every-row-moved.ts'

const RACES = 40
/** The pooler has fewer server connections than clients, so that one client's transactions use several of them. */
const CONNECTIONS = 3

async function openPooled() {
  const url = await startPgbouncer((await createDatabase('nothing')).url, CONNECTIONS)
  return { url, ...(await openStore(NOON, postgres, `${url}?pgbouncer=true`)) }
}

testWith('pgbouncer')('a pooler in transaction mode does not change the order of racing pushes', async () => {
  const { writes, record, reads } = await openPooled()
  const endpoint = await addEndpoint(writes, NOON)
  const pushOf = (id: string, at: number) =>
    incomingPush(pushBody({ trackingIds: [id], eventTime: new Date(NOON - at * 1000).toISOString() }), NOON)
  for (let race = 0; race < RACES; race++) {
    const id = String(10_000 + race)
    const batches = [0, 1, 2].map((batch) => record(...[0, 1, 2].map((at) => pushOf(id, batch * 3 + at))))
    const [found] = await Promise.all([reads.findParcel(id), ...batches, reads.readFeed({ after: 0, limit: 50 })])
    expect(found === null || found.entries.length <= 9).toBe(true)
    expect((await reads.findParcel(id))?.entries).toHaveLength(9)
  }
  const { items } = await reads.readFeed({ after: 0, limit: 1000 })
  const taken = await endpoint.take()
  expect(items).toHaveLength(RACES * 9)
  expect(taken.map(({ sequence }) => sequence).sort((a, b) => a - b)).toEqual(items.map(({ sequence }) => sequence))
  const last = new Map<number, number>()
  for (const { parcelId, sequence, previousSequence } of taken) {
    expect(previousSequence).toBe(last.get(parcelId) ?? 0)
    last.set(parcelId, sequence)
  }
})

testWith('pgbouncer')('behind a pooler a transaction leaves no settings on the connection for other clients', async () => {
  const { url, record, reads } = await openPooled()
  await record(incomingPush(pushBody(), NOON))
  await reads.readFeed({ after: 0, limit: 50 })
  const left = await withClient(url, async (client) => {
    const { rows } = await client.query(
      `select (select count(*)::integer from pg_prepared_statements) as statements, current_setting('statement_timeout') as statement_timeout,
        current_setting('lock_timeout') as lock_timeout, current_setting('idle_in_transaction_session_timeout') as idle_timeout,
        current_setting('enable_seqscan') as enable_seqscan, (select count(*)::integer from pg_locks where locktype = 'advisory') as locks`,
    )
    return rows
  })
  expect(left).toEqual([{ statements: 0, statement_timeout: '0', lock_timeout: '0', idle_timeout: '0', enable_seqscan: 'on', locks: 0 }])
})

testWith('pgbouncer')('a store is moved to a database behind a pooler, and from there to another, with every row', async () => {
  const [first, last] = [await placeOf(sqlite), await placeOf(sqlite)]
  await writeSeededStore(first.place, sqlite)
  const url = await startPgbouncer((await createDatabase('nothing')).url, CONNECTIONS)
  const pooled = { engine: postgres, place: `${url}?pgbouncer=true` }
  await moveStore(first, pooled)
  await moveStore(pooled, last)
  const { contents } = await contentsOf(last)
  dropLeftStores(contents)
  expect(contents).toEqual((await contentsOf(first)).contents)
})

test('the driver does not see the part of an address that names a pooler', () => {
  const address = 'postgres://relay:se%3Fcret@db.example/parcels'
  expect(takePoolerParameter(address)).toEqual({ url: address, named: true })
  expect(takePoolerParameter(`${address}?pgbouncer=true`)).toEqual({ url: address, named: false })
  expect(takePoolerParameter(`${address}?sslmode=require&pgbouncer=true`)).toEqual({ url: `${address}?sslmode=require`, named: false })
  expect(takePoolerParameter(`${address}?pgbouncer=false&sslmode=require`)).toEqual({ url: `${address}?sslmode=require`, named: true })
  expect(() => takePoolerParameter(`${address}?pgbouncer=yes`)).toThrow('store: pgbouncer in the address must be true or false')
})
