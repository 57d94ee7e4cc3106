import { expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { sqlite } from '../../../src/upkeep/sqlite-engine.ts'
import { addEndpoint, endpointOf } from '../../support/delivery/stored-endpoint.ts'
import { HOUR_MS, NOON } from '../../support/runner/constants.ts'
import { moveStore, movesOf, type Place, placeOf } from '../../support/store/moving.ts'
import { storedNumber } from '../../support/store/stored-rows.ts'
import { openStore } from '../../support/store/write-side.ts'

const BEGAN = NOON - HOUR_MS

/** Polls a new parcel that has an entry just before the endpoint began and one since. Returns when what was sent happened, after `BEGAN`. */
async function sentBy({ engine, place }: Place, id: string, parcel: string): Promise<readonly number[]> {
  const { writes, poll } = await openStore(NOON, engine, place)
  const statuses = [BEGAN - 1000, BEGAN].map((atMs) => ({ eventTimestamp: new Date(atMs).toISOString(), status: 'TerminalArrived' }))
  await poll({ asked: parcel, trackingIds: [parcel], language: 'en', statuses })
  const sent = await endpointOf(writes, id, NOON).take()
  await writes.close()
  return sent.map(({ body }) => Date.parse(/"eventTime":"([^"]+)"/.exec(String(body))?.[1] ?? '') - BEGAN)
}

test('7.1: an endpoint began when it did, after a move to PostgreSQL, back, and its undoing', async () => {
  const [first, second, third] = [await placeOf(sqlite), await placeOf(postgres), await placeOf(sqlite)]
  const { writes } = await openStore(BEGAN, sqlite, first.place)
  const { id } = await addEndpoint(writes, BEGAN)
  await writes.close()
  const began = ({ place }: Place) => storedNumber(place, `select began_at_ms from endpoint where id = ${id}`)
  await moveStore(first, second)
  expect([await began(second), await sentBy(second, id, '75000001')]).toEqual([BEGAN, [0]])
  await moveStore(second, third)
  expect([await began(third), await sentBy(third, id, '75000002')]).toEqual([BEGAN, [0]])
  for (const [nth, left] of [second, first].entries()) {
    await movesOf(left.engine).undo(left.place, NOON)
    expect([left.engine.name, await began(left), await sentBy(left, id, `7500001${nth}`)]).toEqual([left.engine.name, BEGAN, [0]])
  }
})
