import { join } from 'node:path'
import { expect, test } from 'vitest'
import { NOON } from '../../../support/runner/constants.ts'
import { temporaryFolder } from '../../../support/runner/temporary.ts'
import { isWholeCount, usedOnSqlite } from '../../../support/store/hot-statements.ts'
import { storedRows } from '../../../support/store/stored-rows.ts'
import { openStore } from '../../../support/store/write-side.ts'

async function openPlans() {
  const { path } = await openStore(NOON)
  return async (query: string) => {
    const steps = await storedRows<{ readonly detail: string }>(path, `explain query plan ${query}`)
    return steps.map(({ detail }) => detail)
  }
}

test('a claim reads waiting deliveries from an index, so their number does not matter', async () => {
  const planOf = await openPlans()
  const conditions = [
    'round <= 0 order by round, next_attempt_at_ms',
    'round > 0 and round < +9 order by round, next_attempt_at_ms',
    'round = +9 order by next_attempt_at_ms',
    'true order by round, next_attempt_at_ms',
  ]
  for (const condition of conditions) {
    const plan = await planOf(`select id from delivery where endpoint_id = +1 and state = 1 and ${condition} limit +2`)
    expect(plan).toEqual([expect.stringContaining('INDEX delivery_due')])
  }
})

test('waiting and dead deliveries are counted on indexes alone', async () => {
  const planOf = await openPlans()
  const waiting =
    'select count(*), min(queued_at_ms) from delivery where endpoint_id = +1 and state < 2 and (parcel_id, sequence) > (+0, +0)'
  const dead = 'select count(*) from delivery where endpoint_id = +1 and state = 3 and state >= 2 and sequence > +0'
  expect(await planOf(waiting)).toEqual([
    expect.stringMatching(/USING COVERING INDEX delivery_waiting \(endpoint_id=\? AND \(parcel_id,sequence\)>/),
  ])
  expect(await planOf(dead)).toEqual([
    expect.stringMatching(/USING COVERING INDEX delivery_ended \(endpoint_id=\? AND state=\? AND sequence>/),
  ])
})

test('the breaches of an order are found by indexes of its parcels', async () => {
  const planOf = await openPlans()
  const parcels = "select parcel_id from order_context where reference = 'A-1' and parcel_id > +1 order by parcel_id limit +2"
  expect(await planOf(parcels)).toEqual([expect.stringMatching(/USING COVERING INDEX \w+ \(reference=\? AND parcel_id>\?\)/)])
  const breaches = "select * from watchdog_breach where parcel_id in (select value from json_each('[1]')) order by parcel_id, id"
  expect((await planOf(breaches))[0]).toMatch(/^SEARCH watchdog_breach USING INDEX watchdog_breach_once \(parcel_id=\?\)/)
})

test('the overview counts stalled parcels on the index of the breaches that last', async () => {
  const planOf = await openPlans()
  const lasting = "select parcel_id from watchdog_breach where ended_at_ms is null and rule >= '' order by rule, id limit 1001"
  expect(await planOf(lasting)).toEqual([
    expect.stringMatching(/^SEARCH watchdog_breach USING INDEX watchdog_breach_open_by_rule \(rule>\?\)/),
  ])
})

const LARGE = 'parcel|identifier|content|sighting|answer|inbox|feed|composed_event|delivery|attempt|operator_event|operator_action'

test('only a count of all rows reads a whole table, and no statement sorts before its limit', async () => {
  // SQLite plans without regard to the size of a table, so an empty one will do.
  const path = join(temporaryFolder(), 'relay.db')
  const used = await usedOnSqlite(path)
  expect(used.length).toBeGreaterThan(80)
  const plans = await Promise.all(
    used.map(async (statement) => {
      const nothing = Array.from(statement.matchAll(/\?/g), () => null)
      const steps = await storedRows<{ readonly detail: string }>(path, `explain query plan ${statement}`, ...nothing)
      return { statement, details: steps.map(({ detail }) => detail) }
    }),
  )
  const isScan = (detail: string) => new RegExp(`^SCAN (?:${LARGE})\\b`).test(detail)
  const scans = plans.filter(({ statement, details }) => !isWholeCount(statement) && details.some(isScan))
  expect(scans).toEqual([])
  // Rows that a part with a limit has read may be grouped, but not sorted within the part.
  const sortOf = (statement: string) => (/limit [^)]*$/.test(statement) ? /TEMP B-TREE/ : /TEMP B-TREE FOR ORDER BY/)
  const sorts = plans.filter(
    ({ statement, details }) => /limit/.test(statement) && details.some((detail) => sortOf(statement).test(detail)),
  )
  expect(sorts).toEqual([])
})
