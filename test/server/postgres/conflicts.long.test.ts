import { expect, onTestFinished, test } from 'vitest'
import { isStorageFailure } from '../../../src/core/domain/errors.ts'
import { saveSetting } from '../../../src/core/store/settings.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { NOON } from '../../support/runner/constants.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

test('a transaction that conflicts with another is repeated until it succeeds', async () => {
  const { url } = await createDatabase()
  const store = await postgres.openWriteStore(url)
  onTestFinished(() => store.close())
  let tries = 0
  await store.transaction(async (tx) => {
    tries += 1
    if (tries < 4) throw Object.assign(new Error('planned'), { code: '40001' })
    await saveSetting(tx, 'x', Buffer.from('y'))
  })
  expect(tries).toBe(4)
  expect(await store.transaction((tx) => tx.loadSetting('x'))).toEqual(Buffer.from('y'))
})

test('four replicas can add a hundred endpoints at the same time while pushes are recorded', async () => {
  const { url } = await createDatabase()
  const replicas = await Promise.all(Array.from({ length: 4 }, () => openStore(NOON, postgres, url)))
  const added = replicas.flatMap(({ writes }, replica) =>
    Array.from({ length: 25 }, (_, nth) => addEndpoint(writes, NOON, { name: `${replica}.${nth}` })),
  )
  const pushed = replicas.map(({ record }, replica) => record(incomingPush(pushBody({ trackingIds: [`100${replica}`] }), NOON)))
  const [endpoints, recorded] = await Promise.all([Promise.all(added), Promise.all(pushed)])
  expect(recorded.flatMap(({ outcomes }) => outcomes.map(({ kind }) => kind))).toEqual(Array(4).fill('recorded'))
  expect(new Set(endpoints.map(({ id }) => id)).size).toBe(100)
})

/** Makes each transaction that records a push of this parcel fail with this code, until the returned function is called. */
async function failFor(url: string, parcel: string, code: string): Promise<() => Promise<void>> {
  const sql = `create function refuse() returns trigger language plpgsql as $$ begin
    if new.parcel_id = (select parcel_id from identifier where value = '${parcel}') then raise exception 'planned' using errcode = '${code}'; end if;
    return new; end $$; create trigger refuse before insert on sighting for each row execute function refuse()`
  await withClient(url, (client) => client.query(sql))
  return async () => void (await withClient(url, (client) => client.query('drop trigger refuse on sighting')))
}

test('a push that meets a duplicate key at every try is quarantined alone', async () => {
  const { url } = await createDatabase()
  await failFor(url, '6666', '23505')
  const { record, errors, reads } = await openStore(NOON, postgres, url)
  const push = (id: string) => incomingPush(pushBody({ trackingIds: [id] }), NOON)
  const { outcomes } = await record(push('1001'), push('6666'), push('1002'))
  expect(outcomes.map(({ kind }) => kind)).toEqual(['recorded', 'quarantined', 'recorded'])
  expect(errors).toHaveLength(1)
  expect((await reads.findParcel('1002'))?.entries).toHaveLength(1)
  expect(await reads.findParcel('6666')).toBeNull()
})

test('pushes that conflict at every try are refused for now, not quarantined', async () => {
  const refusal = async (code: string) => {
    const { url } = await createDatabase()
    const end = await failFor(url, '6666', code)
    const { record, errors, reads } = await openStore(NOON, postgres, url)
    const pushes = ['1001', '6666'].map((id) => incomingPush(pushBody({ trackingIds: [id] }), NOON))
    await expect(record(...pushes)).rejects.toSatisfy(isStorageFailure)
    expect(errors).toEqual([])
    await end()
    expect((await record(...pushes)).outcomes.map(({ kind }) => kind)).toEqual(['recorded', 'recorded'])
    expect((await reads.findParcel('6666'))?.entries).toHaveLength(1)
  }
  await Promise.all(['40001', '40P01', '22012'].map(refusal))
})
