import type { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import { flightKey } from '../../../src/server/postgres/polling/postgres-shared-carrier.ts'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { NOON } from '../../support/runner/constants.ts'
import { openErasures } from '../../support/store/erasures.ts'
import { withClient } from '../../support/store/postgres-client.ts'
import { changeStoredRows, storedRows } from '../../support/store/stored-rows.ts'

const at = (seconds: number) => new Date(NOON + seconds * 1000).toISOString()

const lock = async (client: Client, value: string, how = '') =>
  await client.query(`select value from identifier where value = $1 for update ${how}`, [value])

/**
 * Runs `work` while another transaction holds the identifier `first`, until `work` waits for it. Then that transaction locks `second`: it fails at
 * once if `work` has taken its locks in another order.
 */
async function holding(path: string, { first, second }: Record<'first' | 'second', string>, work: () => Promise<unknown>): Promise<void> {
  await withClient(path, async (client) => {
    await client.query('begin')
    await lock(client, first)
    const done = work()
    const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await expect.poll(async () => (await storedRows(path, waiting)).length, { timeout: 60_000 }).toBeGreaterThan(0)
    await lock(client, second, 'nowait')
    await client.query('commit')
    await done
  })
}

describe('all who lock identifiers do so in one order', () => {
  test('an erasure by the second identifier waits for the first one, and holds none meanwhile', async () => {
    const { path, push, forget, reads } = await openErasures(postgres)
    await push({ trackingIds: ['GONE0001', 'GONE0002'], eventTime: at(1) })
    await holding(path, { first: 'GONE0001', second: 'GONE0002' }, () => forget('GONE0002'))
    expect(await reads.findParcel('GONE0001')).toBeNull()
  })

  test('a push that joins parcels also locks the identifiers that it does not name in that order', async () => {
    const { path, push, reads } = await openErasures(postgres)
    await push({ trackingIds: ['JOIN0001'], eventTime: at(1) })
    await push({ trackingIds: ['JOIN0002', 'JOIN0003'], eventTime: at(2) })
    await holding(path, { first: 'JOIN0002', second: 'JOIN0003' }, () => push({ trackingIds: ['JOIN0001', 'JOIN0003'], eventTime: at(3) }))
    expect((await reads.findParcel('JOIN0002'))?.entries).toHaveLength(3)
  })
})

test('a row about a question to the carrier does not name its parcel, and an erasure removes it', async () => {
  const { path, push, forget } = await openErasures(postgres)
  await push({ trackingIds: ['GONE0001'], eventTime: at(1) })
  expect(flightKey('GONE0002')).toMatch(/^[\w-]{43}$/)
  const insert = 'insert into flight (key, until_ms, holder, outcome) values (?, 0, ?, ?)'
  await changeStoredRows(path, insert, flightKey('GONE0002'), 'one', 'recorded')
  // An earlier version left the identifier itself.
  await changeStoredRows(path, insert, 'GONE0003', 'one', 'recorded')
  await forget('GONE0001')
  expect(await storedRows(path, 'select key from flight')).toEqual([])
})
