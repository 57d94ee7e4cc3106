import { describe, expect, onTestFinished, test } from 'vitest'
import { readEndpointGauges } from '../../../../src/core/flow/delivery/endpoint-queries.ts'
import { openSqliteReader } from '../../../../src/core/store/sqlite/sqlite.ts'
import { createPostgresReader } from '../../../../src/server/postgres/postgres.ts'
import { addEndpoint } from '../../../support/delivery/stored-endpoint.ts'
import { NOON } from '../../../support/runner/constants.ts'
import { countReads } from '../../../support/store/counted-engine.ts'
import { engines } from '../../../support/store/engines.ts'
import { openTestPool } from '../../../support/store/postgres-pool.ts'
import { changeStoredRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

/** One query counts at most 20,000 deliveries. So all deliveries need three queries, and those of the largest parcel need two. */
const DELIVERIES = 45_000
const OF_ONE_PARCEL = 25_000

/** Stores deliveries of an endpoint. `parcelOf`: the SQL expression for the parcel id of delivery `n`, counted from 0. */
async function fill(path: string, endpointId: string, state: number, count: number, parcelOf: string): Promise<void> {
  await changeStoredRows(
    path,
    `with recursive nth(n) as (select 0 union all select n + 1 from nth where n < ${count - 1})
     insert into delivery (endpoint_id, parcel_id, sequence, previous_sequence, state, attempts, queued_at_ms, next_attempt_at_ms)
     select ?, ${parcelOf}, ${1_000_000 * (state + 1)} + n, 0, ${state}, 0, ${NOON} - n, 0 from nth`,
    Number(endpointId),
  )
}

describe.each(engines)('the backlog of an endpoint on $name', (engine) => {
  test('waiting and dead deliveries are counted exactly, and the oldest is found', async () => {
    const { writes, reads, path } = await openStore(NOON, engine)
    const [busy, idle] = [await addEndpoint(writes, NOON, { name: 'busy' }), await addEndpoint(writes, NOON, { name: 'idle' })]
    await fill(path, busy.id, 1, DELIVERIES, `case when n < ${OF_ONE_PARCEL} then 7 else n end`)
    await fill(path, busy.id, 0, 3, '7')
    await fill(path, busy.id, 2, 10, 'n')
    await fill(path, busy.id, 3, DELIVERIES + 1, 'n')
    const backlogs = await reads.countBacklogs([busy.id, idle.id])
    expect(backlogs.get(busy.id)).toEqual({ waiting: DELIVERIES + 3, oldestAtMs: NOON - DELIVERIES + 1, dead: DELIVERIES + 1 })
    expect(backlogs.get(idle.id)).toEqual({ waiting: 0, oldestAtMs: null, dead: 0 })
    // One statement for all endpoints. Of each it looks at 20,000 rows, in whatever order they are.
    const oldest = await reads.listOldestWaiting()
    expect([...oldest.keys()]).toEqual([busy.id])
    expect(oldest.get(busy.id)).toBeLessThan(NOON - 19_990)
  })

  test('the gauges of many endpoints take as many statements as those of one', async () => {
    const { writes, path } = await openStore(NOON, engine)
    const names = Array.from({ length: 40 }, (_, nth) => `shop-${nth}`)
    const gauges = async () => {
      const reader = engine.name === 'sqlite' ? openSqliteReader(path) : createPostgresReader(openTestPool(path, 1), { named: true })
      onTestFinished(() => reader.close())
      const { reads, sent } = countReads(reader)
      const found = await readEndpointGauges({ reads, clock: { now: () => NOON } }, { max: 30, others: 'others' })
      return { sent: sent(), found }
    }
    const [first = '', ...others] = names
    await addEndpoint(writes, NOON, { name: first })
    const alone = await gauges()
    for (const name of others) {
      const { id } = await addEndpoint(writes, NOON, { name })
      await fill(path, id, 1, 3, 'n')
      await fill(path, id, 3, 2, 'n')
    }
    const all = await gauges()
    expect(all.sent).toBe(alone.sent)
    const one = { waiting: 3, oldestWaitingSeconds: 0.002, dead: 2 }
    expect(all.found.slice(1)).toMatchObject([
      ...Array.from({ length: 29 }, () => one),
      { waiting: 30, oldestWaitingSeconds: 0.002, dead: 20 },
    ])
  })
})
