import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { addEndpoint } from '../../support/stored-endpoint.ts'
import { openStore } from '../../support/write-side.ts'

const NOW = Date.UTC(2026, 2, 1, 12)
/** More than are counted in one go, of one parcel and of many. */
const DELIVERIES = 45_000
const OF_ONE_PARCEL = 25_000

function fill(path: string, endpointId: string, state: number, count: number, parcelOf: (nth: number) => number): void {
  const db = new Database(path)
  const insert = db.prepare(
    'insert into delivery (endpoint_id, parcel_id, sequence, previous_sequence, state, attempts, queued_at_ms, next_attempt_at_ms) values (?, ?, ?, 0, ?, 0, ?, 0)',
  )
  db.transaction(() => {
    for (let nth = 0; nth < count; nth++) insert.run(Number(endpointId), parcelOf(nth), 1_000_000 * (state + 1) + nth, state, NOW - nth)
  })()
  db.close()
}

test('what waits for an endpoint and what is dead is counted to the last, and the first that was queued is found', async () => {
  const { writes, reads, path } = await openStore(NOW)
  const [busy, idle] = [await addEndpoint(writes, NOW, { name: 'busy' }), await addEndpoint(writes, NOW, { name: 'idle' })]
  fill(path, busy.id, 1, DELIVERIES, (nth) => (nth < OF_ONE_PARCEL ? 7 : nth))
  fill(path, busy.id, 0, 3, () => 7)
  fill(path, busy.id, 2, 10, (nth) => nth)
  fill(path, busy.id, 3, DELIVERIES + 1, (nth) => nth)
  expect(await reads.countBacklog(busy.id)).toEqual({ waiting: DELIVERIES + 3, oldestAtMs: NOW - DELIVERIES + 1, dead: DELIVERIES + 1 })
  expect(await reads.countBacklog(idle.id)).toEqual({ waiting: 0, oldestAtMs: null, dead: 0 })
})

test('it is counted on indexes alone, so that no delivery is read for it', async () => {
  const { path } = await openStore(NOW)
  const db = new Database(path)
  const planOf = (sql: string) =>
    db
      .prepare<[], { readonly detail: string }>(`explain query plan ${sql}`)
      .all()
      .map(({ detail }) => detail)
  const waiting =
    'select count(*), min(queued_at_ms) from delivery where endpoint_id = +1 and state < 2 and (parcel_id, sequence) > (+0, +0)'
  const dead = 'select count(*) from delivery where endpoint_id = +1 and state = 3 and state >= 2 and sequence > +0'
  expect(planOf(waiting)).toEqual([
    expect.stringMatching(/USING COVERING INDEX delivery_waiting \(endpoint_id=\? AND \(parcel_id,sequence\)>/),
  ])
  expect(planOf(dead)).toEqual([expect.stringMatching(/USING COVERING INDEX delivery_ended \(endpoint_id=\? AND state=\? AND sequence>/)])
  db.close()
})
