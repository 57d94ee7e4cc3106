import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { expect, test } from 'vitest'
import { deliveries } from '../../../src/store/sqlite/migrations/0008-deliveries.ts'
import { addEndpoint } from '../../support/stored-endpoint.ts'
import { openStore } from '../../support/write-side.ts'

const NOON = Date.UTC(2026, 2, 1, 12)

test('7.3: in a store where a replay let later deliveries of its parcel overtake it, they wait again once it is brought up to date', async () => {
  const { path, push, writes } = await openStore(NOON)
  await addEndpoint(writes, NOON)
  for (const minute of [1, 2, 3]) await push({ eventTime: `2026-03-01T10:0${minute}:00.000Z` })
  await push({ trackingIds: ['2002'] })
  await writes.close()
  const db = new Database(path)
  for (const index of ['delivery_waiting', 'delivery_ended', 'delivery_ended_by_time']) db.exec(`DROP INDEX ${index}`)
  db.exec('DROP TABLE job')
  db.exec('UPDATE delivery SET state = 1 - state WHERE sequence < 3')
  const states = () => db.prepare('SELECT state FROM delivery ORDER BY sequence').pluck().all()
  expect(states()).toEqual([0, 1, 0, 1])
  const kysely = new Kysely<unknown>({ dialect: new SqliteDialect({ database: new Database(path) }) })
  await kysely.connection().execute((connection) => deliveries.up(connection))
  await kysely.destroy()
  expect(states()).toEqual([1, 0, 0, 1])
  db.close()
})
