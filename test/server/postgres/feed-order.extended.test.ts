import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { saveSetting } from '../../../src/core/store/settings.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { createDatabase, startOwnServer } from '../../support/store/postgres-database.ts'

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(() => client.end().catch(() => undefined))
  return client
}

test('on PostgreSQL a reader that waits for the oldest transaction may see number 3 before 2', async () => {
  // Use a server without other tests, because their transactions would delay the reader.
  await using server = await startOwnServer()
  const url = server.url()
  const [slow, quick, reader] = [await connect(url), await connect(url), await connect(url)]
  await reader.query(
    "create sequence number; select nextval('number'); create table event (number bigint, written_by xid8 default pg_current_xact_id())",
  )
  const seen: number[] = []
  const read = async () => {
    const { rows } = await reader.query<{ number: string }>(
      'select number from event where written_by < pg_snapshot_xmin(pg_current_snapshot()) order by number',
    )
    for (const { number } of rows) if (!seen.includes(Number(number))) seen.push(Number(number))
  }
  await slow.query('begin')
  const { rows } = await slow.query<{ number: string }>("select nextval('number') as number")
  // The slow client has a number, but no transaction id yet, because it has written nothing. So it does not delay a reader.
  await quick.query("insert into event (number) values (nextval('number'))")
  await read()
  await slow.query('insert into event (number) values ($1)', [rows[0]?.number])
  await slow.query('commit')
  await read()
  expect(seen).toEqual([3, 2])
})

test('a client that stops in a transaction loses the transaction and its locks in seconds', async () => {
  const { url } = await createDatabase()
  const store = await postgres.openWriteStore(url)
  onTestFinished(() => store.close())
  const watcher = await connect(url)
  let isHeld = false
  const stopped = store.transaction(async (tx) => {
    await tx.loadSetting('stopped')
    isHeld = true
    // Like a paused process, this client sends nothing more until the server has ended its transaction.
    await expect
      .poll(
        async () =>
          (await watcher.query("select 1 from pg_stat_activity where state = 'idle in transaction' and datname = current_database()"))
            .rowCount,
      )
      .toBe(0)
    await saveSetting(tx, 'stopped', Buffer.from('x'))
  })
  const outcome = stopped.then(
    () => 'committed',
    () => 'lost',
  )
  await expect.poll(() => isHeld).toBe(true)
  expect(await outcome).toBe('lost')
  expect(await store.transaction((tx) => tx.loadSetting('stopped'))).toBeNull()
})
