import { expect, test, vi } from 'vitest'
import { nameDatabase, openPool } from '../../../src/server/postgres/postgres-pool.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { openTestPool } from '../../support/store/postgres-pool.ts'

test('the relay’s connections, and no others, read 64-bit numbers as JavaScript numbers', async () => {
  const { url } = await createDatabase('nothing')
  const pool = openPool(url, { connectionsMax: 1, connectTimeoutMs: 5000, onConnectionLost: () => undefined })
  const query = 'select 9007199254740991::bigint as wide, count(*) as count, null::bigint as none, 1.5::numeric as other'
  expect((await pool.query(query)).rows).toEqual([{ wide: Number.MAX_SAFE_INTEGER, count: 1, none: null, other: '1.5' }])
  expect((await withClient(url, (client) => client.query(query))).rows).toEqual([
    { wide: '9007199254740991', count: '1', none: null, other: '1.5' },
  ])
  await pool.end()
})

test('the loss of an idle connection is reported, and the connection replaced', async () => {
  const { url } = await createDatabase('nothing')
  const onConnectionLost = vi.fn<(error: Error) => void>()
  const pool = openPool(url, { connectionsMax: 1, connectTimeoutMs: 5000, onConnectionLost })
  const pidOf = async () => (await pool.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid
  const pid = await pidOf()
  await withClient(url, (client) => client.query('select pg_terminate_backend($1)', [pid]))
  await expect.poll(() => onConnectionLost.mock.calls.length).toBeGreaterThan(0)
  expect(await pidOf()).not.toBe(pid)
  await pool.end()
})

test('a connection lost in a transaction fails the next statement, and nothing else', async () => {
  const { url } = await createDatabase('nothing')
  const pool = openTestPool(url, 1)
  const client = await pool.connect()
  await client.query('begin')
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const lost = new Promise((resolve) => client.once('end', resolve))
  await withClient(url, (other) => other.query('select pg_terminate_backend($1)', [rows[0]?.pid]))
  await lost
  await expect(client.query('commit')).rejects.toThrow()
  client.release(true)
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
})

test.each([
  ['postgres://relay:secret@db.example:5433/parcels?sslmode=disable&password=secret', 'postgres://relay@db.example:5433/parcels'],
  ['postgresql://relay:se%20cret@[::1]/parcels', 'postgres://relay@[::1]:5432/parcels'],
  ['postgres://relay:secret@/parcels?host=/run/postgresql', 'postgres://relay@/parcels (socket in /run/postgresql)'],
])('%s is shown without its secrets', (url, name) => expect(nameDatabase(url)).toBe(name))
