import { expect, test } from 'vitest'
import { postgres } from '../../../src/server/postgres/postgres-engine.ts'
import { addEndpoint } from '../../support/delivery/stored-endpoint.ts'
import { pushBody } from '../../support/history/builders.ts'
import { startDatabaseProxy } from '../../support/network/tcp-proxy.ts'
import { NOON } from '../../support/runner/constants.ts'
import { createDatabase } from '../../support/store/postgres-database.ts'
import { incomingPush, openStore } from '../../support/store/write-side.ts'

const TRIPS_MAX = 8
/** The delay of the network in milliseconds. Sending a batch takes less time than this. */
const AWAY_MS = 50

test(`a batch of pushes takes at most ${TRIPS_MAX} round trips, whatever its size`, async () => {
  const { url } = await createDatabase()
  const proxy = await startDatabaseProxy(url, { awayMs: AWAY_MS })
  const { writes, record } = await openStore(NOON, postgres, proxy.through)
  for (const name of ['shop', 'billing']) await addEndpoint(writes, NOON, { name })
  let made = 0
  const pushOf = (parcel: number) => {
    made += 1
    const eventTime = new Date(NOON - made * 1000).toISOString()
    return incomingPush(pushBody({ trackingIds: [`${100_000 + parcel}`], eventTime, location: `Place ${made}` }), NOON)
  }
  let parcels = 0
  /** Two fifths are pushes of new parcels, two fifths of known ones, and the rest are repeats. */
  const batchOf = (size: number, before: readonly ReturnType<typeof pushOf>[]) => [
    ...Array.from({ length: Math.floor(size * 0.4) }, () => pushOf(parcels++)),
    ...before.slice(0, Math.floor(size * 0.4)).map((_push, at) => pushOf(at)),
    ...before.slice(0, Math.floor(size * 0.2)),
  ]
  const first = Array.from({ length: 256 }, () => pushOf(parcels++))
  await record(...first)
  const trips: Record<string, number> = {}
  for (const size of [5, 50, 256]) {
    const batch = batchOf(size, first)
    const before = proxy.trips()
    const { outcomes } = await record(...batch)
    trips[`${batch.length} pushes`] = proxy.trips() - before
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['recorded', 'duplicate']))
  }
  console.log('round trips:', trips)
  expect(Object.values(trips).filter((count) => count > TRIPS_MAX)).toEqual([])
})
